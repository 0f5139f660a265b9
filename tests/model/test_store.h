// A region with its shards, for tests that write into the store without a server.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/hash.h"
#include "common/base/units.h"
#include "server/store/shard.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {

// Under a sanitizer the same code runs ten times as long: tests that are large for the sake of
// being large divide by this.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr uint64_t kSanitizerFactor = 10;
#else
inline constexpr uint64_t kSanitizerFactor = 1;
#endif

class TestStore {
 public:
  struct Options {
    uint64_t memory_bytes = 16 * kMiB;
    uint32_t shard_count = 1;
    uint32_t bucket_bytes = kBucketBytesDefault;
    bool evict = false;
  };

  TestStore() : TestStore(Options()) {}
  explicit TestStore(const Options& options) {
    auto region = Region::Create({.memory_bytes = options.memory_bytes,
                                  .hugepages = HugepagePolicy::kOff,
                                  .bucket_bytes = options.bucket_bytes,
                                  .shard_count = options.shard_count,
                                  .incarnation = NextIncarnation(),
                                  .progress = {}});
    KVD_REQUIRE_OK(region);
    region_ = *std::move(region);
    for (uint32_t i = 0; i < options.shard_count; ++i) {
      auto shard = Shard::Create(*region_, i, clock_, {.evict = options.evict});
      KVD_REQUIRE_OK(shard);
      shards_.push_back(*std::move(shard));
    }
  }

  Region& region() { return *region_; }
  FakeClock& clock() { return clock_; }
  Shard& shard(uint32_t number = 0) { return *shards_[number]; }

  uint64_t Hash(std::string_view key) const {
    return HashKey(key, region_->geometry().hash_seed());
  }
  Shard& ShardOfKey(std::string_view key) {
    return *shards_[ShardOf(Hash(key), region_->geometry().shard_count)];
  }

  StoreResult Put(std::string_view key, std::string_view value, const StoreOptions& options = {}) {
    return ShardOfKey(key).Put(key, Hash(key), value, options);
  }
  StoreResult Delete(std::string_view key, const StoreOptions& options = {}) {
    return ShardOfKey(key).Delete(key, Hash(key), options);
  }
  StoreResult Increment(std::string_view key, int64_t delta, const StoreOptions& options = {}) {
    return ShardOfKey(key).Increment(key, Hash(key), delta, options);
  }
  StoreResult Extend(std::string_view key, Shard::End end, std::string_view piece,
                     const StoreOptions& options = {}, uint64_t value_bytes_max = kMiB) {
    return ShardOfKey(key).Extend(key, Hash(key), end, piece, value_bytes_max, options);
  }
  StoreResult Touch(std::string_view key, const StoreOptions& options = {}) {
    return ShardOfKey(key).Touch(key, Hash(key), options);
  }
  // Sets every shard's idea of the time to the clock's.
  void RefreshClocks() {
    for (const auto& shard : shards_) shard->RefreshClock();
  }
  uint64_t now_unix_us() const { return static_cast<uint64_t>(clock_.NowUnixUs()); }
  std::optional<std::string> Get(std::string_view key) {
    ItemView item;
    Slot slot;
    if (ShardOfKey(key).Find(key, Hash(key), item, slot) != StoreStatus::kOk) return std::nullopt;
    return std::string(item.value);
  }

  absl::Status CheckInvariants() const {
    for (const auto& shard : shards_) {
      if (absl::Status status = shard->CheckInvariants(); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // From it follow all hashes, and what a shard chooses at random: so a seed repeats a run.
  static uint64_t NextIncarnation() {
    static std::atomic<uint64_t> made{0};
    return Mix64((uint64_t{Seed()} << 32) + ++made) | 1;
  }

  FakeClock clock_;
  std::unique_ptr<Region> region_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace kvd::test
