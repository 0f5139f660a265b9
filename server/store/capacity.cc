#include "server/store/capacity.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/layout/bucket.h"
#include "common/layout/item.h"
#include "common/layout/slot.h"
#include "common/layout/superblock.h"
#include "server/store/index_load.h"
#include "server/store/local_space.h"
#include "server/store/size_classes.h"

namespace kvd {
namespace {

constexpr uint64_t kHugepageBytes = uint64_t{2} << 20;
constexpr int kBucketsDrawn = 4000;
constexpr int kStepsOfDoubling = 8;
// For what differs from run to run, and for spans that are not full.
constexpr double kMargin = 0.02;

struct Kind {
  uint64_t occupied_bytes;
  double share;  // of 1
  bool local;
};

// Objects of the heap, by class; beyond them whole pages.
struct HeapUse {
  std::array<double, kSizeClassCount> objects{};
  double large_bytes = 0;

  void Add(uint64_t bytes, double count) {
    if (bytes <= kLargestObjectBytes) {
      objects[SizeClassOf(bytes)] += count;
    } else {
      large_bytes +=
          count * static_cast<double>((bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
    }
  }
  void Add(const HeapUse& other) {
    for (uint32_t i = 0; i < kSizeClassCount; ++i) objects[i] += other.objects[i];
    large_bytes += other.large_bytes;
  }
  double Bytes() const {
    double bytes = large_bytes;
    for (uint32_t i = 0; i < kSizeClassCount; ++i) {
      bytes += std::ceil(objects[i] / ObjectsPerSpan(i)) * kSpanPages[i] * kPageBytes;
    }
    return bytes;
  }
};

// What buckets with a load have, together or in the mean.
struct BucketUse {
  HeapUse heap;  // besides items that are too long for any bucket
  double items = 0;
  double reads = 0;
  double local_items = 0;
};

class Planner {
 public:
  explicit Planner(const CapacityNeeds& needs)
      : needs_(needs),
        local_bytes_(needs.bucket_bytes - kBucketHeaderBytes),
        buckets_per_segment_(kSegmentBytes / needs.bucket_bytes) {
    double shares = 0;
    for (const ItemKind& kind : needs.kinds) shares += kind.share;
    KVD_CHECK(shares > 0);
    double before = 0;
    for (const ItemKind& kind : needs.kinds) {
      const uint8_t flags =
          static_cast<uint8_t>((kind.expires ? kItemHasExpiry : 0) |
                               (kind.value_bytes > UINT32_MAX ? kItemLongValue : 0));
      const uint64_t bytes = RoundUpItemSize(ItemBytes(flags, kind.key_bytes, kind.value_bytes));
      const bool local = bytes <= LocalItemBytesMax(needs.bucket_bytes);
      kinds_.push_back({bytes, kind.share / shares, local});
      before += kind.share / shares;
      up_to_.push_back(before);
      if (local) local_bytes_per_item_ += kind.share / shares * static_cast<double>(bytes);
      largest_item_bytes_ = std::max(largest_item_bytes_, bytes);
    }
  }

  Capacity Plan() const {
    const double items = static_cast<double>(needs_.items) / needs_.pollers;  // of one poller
    const double buckets = BucketsFor(items);
    HeapUse long_items;
    for (const Kind& kind : kinds_) {
      if (!kind.local) long_items.Add(kind.occupied_bytes, items * kind.share);
    }
    const BucketUse now = UseOf(items, buckets);
    // What has left its bucket earlier in this doubling leaves holes when it comes home.
    HeapUse most = now.heap;
    for (int step = 1; step < kStepsOfDoubling; ++step) {
      const double earlier = items * std::exp2(-static_cast<double>(step) / kStepsOfDoubling);
      const HeapUse then = UseOf(earlier, BucketsFor(earlier)).heap;
      if (then.Bytes() > most.Bytes()) most = then;
    }
    most.Add(long_items);

    Capacity capacity;
    const double segments = std::ceil(buckets / buckets_per_segment_);
    capacity.index_bytes = static_cast<uint64_t>(segments * needs_.pollers) * kSegmentBytes;
    capacity.heap_bytes = static_cast<uint64_t>(most.Bytes() * needs_.pollers);
    capacity.local_share = now.items == 0 ? 0 : now.local_items / now.items;
    capacity.reads_per_get = now.items == 0 ? 1 : now.reads / now.items;
    for (const ItemKind& kind : needs_.kinds) {
      capacity.largest_value_bytes = std::max(capacity.largest_value_bytes, kind.value_bytes);
    }
    for (size_t i = 0; i < kinds_.size(); ++i) {
      capacity.user_bytes +=
          static_cast<double>(needs_.items) * kinds_[i].share *
          static_cast<double>(needs_.kinds[i].key_bytes + needs_.kinds[i].value_bytes);
    }
    capacity.memory_bytes = Memory(capacity);
    return capacity;
  }

 private:
  double BucketsFor(double items) const {
    const double by_space = items * local_bytes_per_item_ * 100 /
                            (static_cast<double>(local_bytes_) * kLocalSpacePercentMax);
    const double by_slots = items * 100 / kSlotsPerHundredBucketsMax;
    return std::max(
        {std::ceil(by_space), std::ceil(by_slots), static_cast<double>(buckets_per_segment_)});
  }

  // Of all buckets, where there are so many: 2^L of them before this doubling, of which the first
  // `split` have been shared among two.
  BucketUse UseOf(double items, double buckets) const {
    const double before = std::exp2(std::floor(std::log2(buckets)));
    const double split = buckets - before;
    BucketUse use;
    Draw(items / before, before - split, use);
    Draw(items / before / 2, 2 * split, use);
    return use;
  }

  // Adds what `buckets` buckets with a mean of `load` items have.
  void Draw(double load, double buckets, BucketUse& use) const {
    if (buckets <= 0) return;
    const double weight = buckets / kBucketsDrawn;
    Random random(1);
    for (int bucket = 0; bucket < kBucketsDrawn; ++bucket) {
      const uint64_t items = Poisson(load, random);
      uint64_t free_bytes = local_bytes_;
      use.items += weight * static_cast<double>(items);
      for (uint64_t i = 0; i < items; ++i) {
        const Kind& kind = kinds_[AnyKind(random)];
        double reads = 1 + static_cast<double>(i / kSlotsPerHeader);
        if (kind.local && kind.occupied_bytes <= free_bytes) {
          free_bytes -= kind.occupied_bytes;
          use.local_items += weight;
        } else {
          reads += 1;
          if (kind.local) use.heap.Add(kind.occupied_bytes, weight);
        }
        use.reads += weight * reads;
      }
      if (items > kSlotsPerHeader) {
        use.heap.Add(kBucketHeaderBytes,
                     weight * static_cast<double>((items - 1) / kSlotsPerHeader));
      }
    }
  }

  // Knuth's, for means of a few dozen at most.
  static uint64_t Poisson(double mean, Random& random) {
    const double end = std::exp(-mean);
    uint64_t events = 0;
    for (double product = random.NextDouble(); product > end; product *= random.NextDouble())
      ++events;
    return events;
  }

  size_t AnyKind(Random& random) const {
    if (kinds_.size() == 1) return 0;
    const auto at = std::upper_bound(up_to_.begin(), up_to_.end(), random.NextDouble());
    return std::min(static_cast<size_t>(at - up_to_.begin()), kinds_.size() - 1);
  }

  uint64_t Memory(const Capacity& capacity) const {
    const double items = static_cast<double>(capacity.index_bytes + capacity.heap_bytes);
    // A rewritten item is there twice for a moment, and each poller is about to take a segment.
    const uint64_t under_way = needs_.pollers * (largest_item_bytes_ + kSegmentBytes);
    uint64_t bytes = static_cast<uint64_t>(items * (1 + kMargin)) + under_way + sizeof(Superblock);
    bytes += bytes / kSegmentBytes * sizeof(uint64_t) + kPageBytes;  // the directory
    // A value is a quarter of the memory at most.
    bytes = std::max(
        {bytes, 4 * capacity.largest_value_bytes, (uint64_t{needs_.pollers} + 3) * kSegmentBytes});
    return (bytes + kHugepageBytes - 1) / kHugepageBytes * kHugepageBytes;
  }

  const CapacityNeeds& needs_;
  const uint64_t local_bytes_;
  const uint32_t buckets_per_segment_;
  std::vector<Kind> kinds_;
  std::vector<double> up_to_;  // sums of shares
  double local_bytes_per_item_ = 0;
  uint64_t largest_item_bytes_ = 0;
};

}  // namespace

Capacity PlanCapacity(const CapacityNeeds& needs) {
  KVD_CHECK(!needs.kinds.empty() && needs.pollers > 0);
  return Planner(needs).Plan();
}

}  // namespace kvd
