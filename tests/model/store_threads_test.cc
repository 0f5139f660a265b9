// One writer and several readers in one process, on the same bytes: no reader may see a value that
// is torn, stale or from nowhere, or miss a key that is there. What a key's value is follows from
// (key, generation) alone, so each reader judges by itself. Run under the thread sanitizer it also
// shows that every access to shared bytes is an atomic one.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint32_t kReaders = 3;

struct Traffic {
  uint64_t keys;
  uint64_t value_bytes_max;
  uint64_t operations;
  uint64_t memory_bytes = 16 * kMiB;
  uint32_t bucket_bytes = kBucketBytesMax;  // few buckets in the first segment: splits begin early
  bool touches = false;                     // expiries in the far future come and go as well
  bool evict = false;                       // then any miss is right
};

class Hunt {
 public:
  explicit Hunt(const Traffic& traffic)
      : traffic_(traffic),
        store_({.memory_bytes = traffic.memory_bytes,
                .shard_count = 1,
                .bucket_bytes = traffic.bucket_bytes,
                .evict = traffic.evict}),
        begun_(traffic.keys),
        done_(traffic.keys) {}

  void Run() {
    std::vector<std::thread> readers;
    for (uint32_t i = 0; i < kReaders; ++i) readers.emplace_back([this, i] { Read(i); });
    Write();
    stop_.store(true);
    for (std::thread& reader : readers) reader.join();
    KVD_REQUIRE_OK(store_.CheckInvariants());
    INFO("reads " << reads_ << ", remembered " << remembered_ << ", retries " << retries_);
    std::string found;
    for (const std::string& error : errors_) found += error;
    REQUIRE(found == "");
    REQUIRE(reads_ > 0);
    REQUIRE(remembered_ > 0);
  }

  const ShardStats stats() { return store_.shard().stats(); }

 private:
  static std::string KeyOf(uint64_t number) { return "key" + std::to_string(number); }

  // Generation zero is "never written"; some generations are deletes.
  static bool IsDelete(uint64_t number, uint64_t generation) {
    return generation == 0 || Mix64(number * 1'000'003 + generation) % 5 == 0;
  }
  std::string ValueOf(uint64_t number, uint64_t generation) const {
    Random random(Mix64(number) + generation);
    std::string value(8 + random.Uniform(traffic_.value_bytes_max), '\0');
    for (size_t i = 8; i < value.size(); ++i) value[i] = static_cast<char>(random.Next());
    std::memcpy(value.data(), &generation, sizeof(generation));
    return value;
  }

  void Write() {
    Random random(Seed());
    Shard& shard = store_.shard();
    for (uint64_t step = 0; step < traffic_.operations; ++step) {
      // Every other write goes to one of a few keys, so that readers meet it.
      const uint64_t number = random.OneIn(2) ? random.Uniform(traffic_.keys) : random.Uniform(16);
      const uint64_t generation = begun_[number].load(std::memory_order_relaxed) + 1;
      const std::string key = KeyOf(number);
      begun_[number].store(generation);
      if (IsDelete(number, generation)) {
        shard.Delete(key, store_.Hash(key));
      } else if (shard.Put(key, store_.Hash(key), ValueOf(number, generation)).status !=
                 StoreStatus::kOk) {
        shard.Delete(key, store_.Hash(key));  // no room: not what this test is about
        if (errors_[kReaders].empty()) errors_[kReaders] = "the region is full; ";
      }
      done_[number].store(generation);
      if (traffic_.touches) Touch(random);
      if (step % 8 == 0) shard.Work();
      if (step % 64 == 0) shard.RefreshClock();
    }
  }

  void Touch(Random& random) {
    const std::string key = KeyOf(random.Uniform(16));
    StoreOptions options;
    if (random.OneIn(2)) options.extras.expiry_unix_us = UINT64_MAX - random.Uniform(1000);
    store_.Touch(key, options);
  }

  void Read(uint32_t reader_number) {
    Random random(Seed() + 1 + reader_number);
    ReferenceReader reader(store_.region().base());
    uint64_t reads = 0;
    do {
      const uint64_t number = random.OneIn(3) ? random.Uniform(traffic_.keys) : random.Uniform(16);
      const std::string key = KeyOf(number);
      const uint64_t before = done_[number].load();
      const std::optional<std::string> value =
          random.OneIn(2) ? reader.GetRemembered(key) : reader.Get(key);
      const uint64_t after = begun_[number].load();
      ++reads;
      const std::string error = Judge(number, value, before, after);
      if (!error.empty() && errors_[reader_number].empty())
        errors_[reader_number] = key + ": " + error + "; ";
    } while (!stop_.load());
    reads_ += reads;
    retries_ += reader.retries();
    remembered_ += reader.remembered_hits();
  }

  // What was read must have been current at some moment: its generation is at least the last one
  // acknowledged before the read began and at most the last one begun before it ended.
  std::string Judge(uint64_t number, const std::optional<std::string>& value, uint64_t before,
                    uint64_t after) const {
    if (!value) {
      if (traffic_.evict) return "";
      for (uint64_t generation = before; generation <= after; ++generation) {
        if (IsDelete(number, generation)) return "";
      }
      return "missed between generations " + std::to_string(before) + " and " +
             std::to_string(after);
    }
    uint64_t generation = 0;
    if (value->size() < sizeof(generation)) return "short value";
    std::memcpy(&generation, value->data(), sizeof(generation));
    if (generation < before || generation > after) {
      return "stale: generation " + std::to_string(generation) + " is not from " +
             std::to_string(before) + " to " + std::to_string(after);
    }
    return *value == ValueOf(number, generation) ? "" : "torn";
  }

  const Traffic traffic_;
  TestStore store_;
  std::vector<std::atomic<uint64_t>> begun_;
  std::vector<std::atomic<uint64_t>> done_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> reads_{0}, retries_{0}, remembered_{0};
  std::vector<std::string> errors_ = std::vector<std::string>(kReaders + 1);
};

TEST_CASE("Threads: small values under growth are never torn, stale or missed") {
  Hunt hunt({.keys = 12'000, .value_bytes_max = 64, .operations = 150'000});
  hunt.Run();
  REQUIRE(hunt.stats().splits > 100);
  REQUIRE(hunt.stats().overwrites_moved > 1000);
}

TEST_CASE("Threads: a few keys of one size, overwritten in place, are never torn") {
  Hunt hunt({.keys = 16, .value_bytes_max = 1, .operations = 100'000});
  hunt.Run();
  REQUIRE(hunt.stats().overwrites_in_place > 10'000);
}

TEST_CASE(
    "Threads: values of mixed sizes, replaced out of place in reused memory, are never torn or "
    "stale") {
  Hunt hunt({.keys = 200, .value_bytes_max = 6'000, .operations = 30'000});
  hunt.Run();
  REQUIRE(hunt.stats().overwrites_moved > 1000);
}

TEST_CASE("Threads: long chains of tiny items are walked without a wrong miss") {
  Hunt hunt({.keys = 20'000,
             .value_bytes_max = 4,
             .operations = 150'000,
             .bucket_bytes = kBucketBytesMax});
  hunt.Run();
  REQUIRE(hunt.stats().splits > 100);
}

TEST_CASE("Threads: items that are touched, in place and out of place, are never torn or missed") {
  Hunt hunt({.keys = 300, .value_bytes_max = 600, .operations = 60'000, .touches = true});
  hunt.Run();
}

TEST_CASE("Threads: what is left of a store that evicts all the time is never torn or stale") {
  Hunt hunt({.keys = 12'000,
             .value_bytes_max = 3'000,
             .operations = 60'000,
             .memory_bytes = 6 * kMiB,
             .bucket_bytes = kBucketBytesDefault,
             .touches = true,
             .evict = true});
  hunt.Run();
  REQUIRE(hunt.stats().evicted_items > 1000);
}

}  // namespace
}  // namespace kvd::test
