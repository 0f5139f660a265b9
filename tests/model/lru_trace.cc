#include "tests/model/lru_trace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include "client/internal/hit_sampler.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "server/store/region.h"
#include "server/store/shard.h"

namespace kvd::test {
namespace {

std::string KeyOf(uint64_t number) { return "key" + std::to_string(Mix64(number)); }

// Of one key always the same.
uint64_t ValueBytesOf(const TraceOptions& options, uint64_t number) {
  const uint64_t span = options.value_bytes_max - options.value_bytes_min + 1;
  return options.value_bytes_min + Mix64(number + options.seed) % span;
}

int64_t ThreadCpuNs() {
  timespec now;
  KVD_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

class TracedStore {
 public:
  explicit TracedStore(const TraceOptions& options) : options_(options) {
    sampler_.Enable(options.told == Told::kAsClientsTell);
    RegionOptions memory;
    memory.memory_bytes = options.memory_bytes;
    memory.hugepages = HugepagePolicy::kOff;
    region_ = Region::Create(memory).value();
    shard_ = Shard::Create(*region_, 0, RealClock::Get(), {.evict = true}).value();
    value_.assign(options.value_bytes_max, 'v');
  }

  bool Access(uint64_t number) {
    const std::string key = KeyOf(number);
    const uint64_t hash = HashKey(key, region_->geometry().hash_seed());
    const std::string_view value(value_.data(), ValueBytesOf(options_, number));
    // As a client reads: the server does not learn of it.
    if (shard_->Peek(key, hash)) {
      if (options_.told == Told::kAll) shard_->NoteHit(hash);
      if (sampler_.Note(hash, value.size())) TellOfHits();
      return true;
    }
    const int64_t began_ns = ThreadCpuNs();
    KVD_CHECK(shard_->Put(key, hash, value).status == StoreStatus::kOk);
    put_ns_ += ThreadCpuNs() - began_ns;
    shard_->Work();
    return false;
  }

  int64_t put_ns() const { return put_ns_; }

  const Shard& shard() const { return *shard_; }

 private:
  void TellOfHits() {
    const std::string_view notes = sampler_.Take();
    for (size_t at = 0; at < notes.size(); at += sizeof(uint64_t)) {
      uint64_t hash;
      std::memcpy(&hash, notes.data() + at, sizeof(hash));
      shard_->NoteHit(hash);
    }
  }

  const TraceOptions options_;
  HitSampler sampler_;
  int64_t put_ns_ = 0;
  std::unique_ptr<Region> region_;
  std::unique_ptr<Shard> shard_;
  std::string value_;
};

}  // namespace

Zipf::Zipf(uint64_t keys, double exponent) {
  double sum = 0;
  for (uint64_t k = 0; k < keys; ++k) {
    sum += std::pow(static_cast<double>(k + 1), -exponent);
    cumulative_.push_back(sum);
  }
}

uint64_t Zipf::Next(Random& random) const {
  const double at = random.NextDouble() * cumulative_.back();
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
  return static_cast<uint64_t>(std::min(found, cumulative_.end() - 1) - cumulative_.begin());
}

bool ExactLru::Access(uint64_t key, uint64_t bytes) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    by_age_.splice(by_age_.begin(), by_age_, found->second);
    return true;
  }
  by_age_.push_front({key, bytes});
  by_key_[key] = by_age_.begin();
  bytes_ += bytes;
  while (bytes_ > capacity_bytes_) {
    bytes_ -= by_age_.back().bytes;
    by_key_.erase(by_age_.back().key);
    by_age_.pop_back();
  }
  return false;
}

TraceResult RunTrace(const TraceOptions& options) {
  const Zipf zipf(options.keys, options.exponent);
  const uint64_t warm_up = options.requests / 2;
  const auto measure = [&](auto access) {
    Random random(options.seed);
    uint64_t hits = 0;
    for (uint64_t i = 0; i < options.requests; ++i) {
      if (access(zipf.Next(random), i >= warm_up) && i >= warm_up) ++hits;
    }
    return static_cast<double>(hits) / static_cast<double>(options.requests - warm_up);
  };
  TraceResult result;
  TracedStore store(options);
  double user_bytes = 0;
  int64_t put_ns = 0;
  uint64_t puts = 0;
  result.hit_ratio = measure([&](uint64_t number, bool counts) {
    const int64_t before_ns = store.put_ns();
    const bool hit = store.Access(number);
    if (!counts) return hit;
    user_bytes += static_cast<double>(store.shard().stats().user_bytes);
    put_ns += store.put_ns() - before_ns;
    if (!hit) ++puts;
    return hit;
  });
  KVD_CHECK(store.shard().CheckInvariants().ok());
  const ShardStats stats = store.shard().stats();
  result.items = stats.items;
  result.user_bytes =
      static_cast<uint64_t>(user_bytes / static_cast<double>(options.requests - warm_up));
  result.evicted_items = stats.evicted_items;
  result.evicting_put_ns = puts == 0 ? 0 : static_cast<uint64_t>(put_ns) / puts;
  const auto exact = [&](uint64_t capacity_bytes) {
    ExactLru lru(capacity_bytes);
    return measure([&](uint64_t number, bool) {
      return lru.Access(number, KeyOf(number).size() + ValueBytesOf(options, number));
    });
  };
  result.exact_hit_ratio = exact(result.user_bytes);
  result.unencumbered_hit_ratio = exact(options.memory_bytes);
  return result;
}

}  // namespace kvd::test
