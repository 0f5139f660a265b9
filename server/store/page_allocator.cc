#include "server/store/page_allocator.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace kvd {
namespace {

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool HoldsSegment(uint64_t begin, uint64_t bytes) {
  return RoundUp(begin, kSegmentBytes) + kSegmentBytes <= begin + bytes;
}

}  // namespace

PageAllocator::PageAllocator(RegionOffset begin, RegionOffset end)
    : begin_(ToBytes(begin)), end_(ToBytes(end)) {
  KVD_CHECK(begin_ % kPageBytes == 0 && end_ % kPageBytes == 0 && begin_ < end_);
  Insert({begin_, end_ - begin_});
}

void PageAllocator::Insert(Run run) {
  const auto [begin, bytes] = run;
  if (bytes == 0) return;
  by_begin_.emplace(begin, bytes);
  by_bytes_.emplace(bytes, uint64_t{0} - begin);
  if (HoldsSegment(begin, bytes)) with_segment_.insert(begin);
  free_bytes_.store(free_bytes() + bytes, std::memory_order_relaxed);
}

void PageAllocator::Erase(Run run) {
  const auto [begin, bytes] = run;
  by_begin_.erase(begin);
  by_bytes_.erase({bytes, uint64_t{0} - begin});
  with_segment_.erase(begin);
  free_bytes_.store(free_bytes() - bytes, std::memory_order_relaxed);
}

std::optional<RegionOffset> PageAllocator::Allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > end_ - begin_) return std::nullopt;
  bytes = RoundUp(bytes, kPageBytes);
  const std::lock_guard lock(mutex_);
  const auto found = by_bytes_.lower_bound({bytes, 0});
  if (found == by_bytes_.end()) return std::nullopt;
  const Run run{uint64_t{0} - found->second, found->first};
  Erase(run);
  Insert({run.first, run.second - bytes});
  return RegionOffset{run.first + run.second - bytes};
}

std::optional<RegionOffset> PageAllocator::AllocateSegment() {
  const std::lock_guard lock(mutex_);
  if (with_segment_.empty()) return std::nullopt;
  const Run run = *by_begin_.find(*with_segment_.begin());
  const uint64_t segment = RoundUp(run.first, kSegmentBytes);
  const uint64_t after = segment + kSegmentBytes;
  Erase(run);
  Insert({run.first, segment - run.first});
  Insert({after, run.first + run.second - after});
  return RegionOffset{segment};
}

void PageAllocator::Free(RegionOffset offset, uint64_t bytes) {
  uint64_t begin = ToBytes(offset);
  uint64_t end = begin + RoundUp(bytes, kPageBytes);
  KVD_CHECK(begin % kPageBytes == 0 && begin >= begin_ && begin < end && end <= end_);
  const std::lock_guard lock(mutex_);
  const auto above = by_begin_.lower_bound(begin);
  KVD_CHECK(above == by_begin_.end() || above->first >= end);
  Run next{0, 0};
  if (above != by_begin_.end() && above->first == end) next = *above;
  Run previous{0, 0};
  if (above != by_begin_.begin()) {
    const Run below = *std::prev(above);
    KVD_CHECK(below.first + below.second <= begin);
    if (below.first + below.second == begin) previous = below;
  }
  if (next.second != 0) {
    Erase(next);
    end = next.first + next.second;
  }
  if (previous.second != 0) {
    Erase(previous);
    begin = previous.first;
  }
  Insert({begin, end - begin});
}

uint64_t PageAllocator::longest_free_run_bytes() const {
  const std::lock_guard lock(mutex_);
  return by_bytes_.empty() ? 0 : by_bytes_.rbegin()->first;
}

uint64_t PageAllocator::FreeBytesFrom(RegionOffset at) const {
  const std::lock_guard lock(mutex_);
  const auto after = by_begin_.upper_bound(ToBytes(at));
  if (after == by_begin_.begin()) return 0;
  const auto& [begin, bytes] = *std::prev(after);
  return ToBytes(at) < begin + bytes ? begin + bytes - ToBytes(at) : 0;
}

absl::Status PageAllocator::CheckInvariants() const {
  const std::lock_guard lock(mutex_);
  uint64_t free = 0;
  uint64_t last_end = 0;
  size_t segments = 0;
  for (const auto& [begin, bytes] : by_begin_) {
    if (begin < begin_ || begin + bytes > end_ || bytes == 0 || begin % kPageBytes != 0 ||
        bytes % kPageBytes != 0) {
      return absl::InternalError(
          absl::StrCat("free run of ", bytes, " bytes at ", begin, " is not in the region"));
    }
    if (last_end != 0 && begin <= last_end) {
      return absl::InternalError(
          absl::StrCat("free run at ", begin, " touches the one that ends at ", last_end));
    }
    if (by_bytes_.count({bytes, uint64_t{0} - begin}) == 0) {
      return absl::InternalError(absl::StrCat("free run at ", begin, " is not ordered by size"));
    }
    if (HoldsSegment(begin, bytes)) {
      ++segments;
      if (with_segment_.count(begin) == 0) {
        return absl::InternalError(
            absl::StrCat("free run at ", begin, " is not among those that hold a segment"));
      }
    }
    last_end = begin + bytes;
    free += bytes;
  }
  if (by_bytes_.size() != by_begin_.size() || with_segment_.size() != segments ||
      free != free_bytes()) {
    return absl::InternalError(absl::StrCat("free runs: ", by_begin_.size(), " by address, ",
                                            by_bytes_.size(), " by size; ", free, " bytes, ",
                                            free_bytes(), " counted"));
  }
  return absl::OkStatus();
}

}  // namespace kvd
