// The store against std::map: random operations of mixed sizes, by seed.
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct Mix {
  uint64_t keys = 1000;  // distinct keys
  uint64_t key_bytes_max = 40;
  uint64_t value_bytes_max = 300;
  uint32_t long_value_one_in = 0;  // 0: never; otherwise values up to 64 times as long
  uint64_t memory_bytes = 16 * kMiB;
  uint32_t shard_count = 1;
  uint32_t bucket_bytes = kBucketBytesDefault;
  uint64_t operations = 60'000;
  uint64_t check_every = 5'000;
  // What a run must have come across, or it proved less than it says.
  bool expect_refusals = false;
  bool expect_splits = false;
  bool expect_overflow = false;
};

class Model {
 public:
  explicit Model(const Mix& mix)
      : mix_(mix),
        random_(Seed()),
        store_(TestStore::Options{mix.memory_bytes, mix.shard_count, mix.bucket_bytes}),
        reader_(store_.region().base()) {
    for (uint64_t i = 0; i < mix.keys; ++i)
      keys_.push_back(Bytes(random_.Between(1, mix.key_bytes_max)) + Tail(i));
    for (std::string& key : keys_) key.resize(std::min<size_t>(key.size(), kKeyBytesMax));
  }

  void Run() {
    for (step_ = 1; step_ <= mix_.operations; ++step_) {
      Step();
      if (step_ % mix_.check_every == 0) Check();
    }
    Check();
    RequireReached();
    DeleteEverything();
  }

 private:
  struct Known {
    std::string value;
    uint64_t version = 0;
  };

  std::string Bytes(uint64_t length) {
    std::string bytes(length, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.Next());
    return bytes;
  }
  static std::string Tail(uint64_t i) { return std::string(reinterpret_cast<const char*>(&i), 3); }

  std::string NewValue() {
    uint64_t max = mix_.value_bytes_max;
    if (mix_.long_value_one_in != 0 && random_.OneIn(mix_.long_value_one_in)) max *= 64;
    return Bytes(random_.Between(0, max));
  }

  void Step() {
    const std::string& key = keys_[random_.Uniform(keys_.size())];
    if (random_.OneIn(50)) store_.clock().AdvanceMs(1);
    if (random_.OneIn(200)) store_.clock().SetUnixUs(1'600'000'000'000'000);
    if (random_.OneIn(10)) store_.ShardOfKey(key).RefreshClock();
    switch (random_.Uniform(16)) {
      case 0:
      case 1:
      case 2:
        Delete(key);
        break;
      case 3:
        Get(key);
        break;
      case 4:
        Reserve(key);
        break;
      case 5:
        SettleReservation();
        break;
      case 6:
        HoldOrRelease(key);
        break;
      case 7:
        store_.ShardOfKey(key).Work();
        break;
      case 8:
        SameSizePut(key);
        break;
      default:
        Put(key, NewValue());
    }
  }

  // Catch2's own assertions cost more than the operations here, several times so under a sanitizer.
  void Expect(bool holds, const char* what) const {
    if (!holds) FAIL("operation " << step_ << ": not so: " << what);
  }

  void Accept(const std::string& key, std::string value, const StoreResult& result) {
    if (result.status == StoreStatus::kNoSpace) {
      ++refused_;
      Get(key);
      return;
    }
    Expect(result.status == StoreStatus::kOk, "result.status == StoreStatus::kOk");
    Expect(result.version > versions_[key],
           "result.version > versions_[key]");  // also across a delete
    versions_[key] = result.version;
    model_[key] = {std::move(value), result.version};
    ItemView item;
    Slot slot;
    Expect(store_.ShardOfKey(key).Find(key, store_.Hash(key), item, slot) == StoreStatus::kOk,
           "store_.ShardOfKey(key).Find(key, store_.Hash(key), item, slot)");
    Expect(slot == result.slot, "slot == result.slot");
    Expect(item.version == result.version, "item.version == result.version");
  }

  void Put(const std::string& key, std::string value) {
    const StoreResult result = store_.Put(key, value);
    Accept(key, std::move(value), result);
  }

  void SameSizePut(const std::string& key) {
    const auto found = model_.find(key);
    Put(key, Bytes(found == model_.end() ? 8 : found->second.value.size()));
  }

  void Delete(const std::string& key) {
    const StoreResult result = store_.Delete(key);
    Expect(result.status == (model_.count(key) != 0 ? StoreStatus::kOk : StoreStatus::kNotFound),
           "result.status == (model_.count(key) != 0 ? StoreStatus::kOk : StoreStatus::kNotFound)");
    if (model_.erase(key) == 0) return;
    Expect(result.version > versions_[key], "result.version > versions_[key]");
    versions_[key] = result.version;
  }

  void Get(const std::string& key) {
    const auto found = model_.find(key);
    const std::optional<std::string> expected =
        found == model_.end() ? std::nullopt : std::optional(found->second.value);
    Expect(store_.Get(key) == expected, "store_.Get(key) == expected");
    Expect(reader_.Get(key) == expected, "reader_.Get(key) == expected");
  }

  void Reserve(const std::string& key) {
    if (reservations_.size() >= 8) return;
    const std::string value = NewValue();
    Reservation reservation;
    if (store_.ShardOfKey(key).Reserve(key, store_.Hash(key), value.size(), reservation).status !=
        StoreStatus::kOk) {
      ++refused_;
      return;
    }
    Expect(reservation.key == key, "reservation.key == key");
    Expect(reservation.value_len == value.size(), "reservation.value_len == value.size()");
    if (!value.empty()) std::memcpy(reservation.value, value.data(), value.size());
    reservations_.push_back({key, value, reservation});
    Get(key);
  }

  void SettleReservation() {
    if (reservations_.empty()) return;
    const size_t i = random_.Uniform(reservations_.size());
    const Pending pending = reservations_[i];
    reservations_.erase(reservations_.begin() + static_cast<ptrdiff_t>(i));
    if (random_.OneIn(3)) {
      store_.ShardOfKey(pending.key).Abort(pending.reservation);
      Get(pending.key);
    } else {
      Accept(pending.key, pending.value,
             store_.ShardOfKey(pending.key).Commit(pending.reservation));
    }
  }

  // Held bytes must stay what they were, whatever happens to the key.
  void HoldOrRelease(const std::string& key) {
    if (held_.size() >= 8) {
      const HeldItem held = held_.back();
      held_.pop_back();
      RequireUnchanged(held);
      store_.ShardOfKey(held.key).Release(held.slot);
      return;
    }
    ItemView item;
    Slot slot;
    if (store_.ShardOfKey(key).Find(key, store_.Hash(key), item, slot) != StoreStatus::kOk) return;
    store_.ShardOfKey(key).Hold(slot);
    held_.push_back({key, std::string(item.value), item.version, slot});
  }

  struct HeldItem {
    std::string key;
    std::string value;
    uint64_t version;
    Slot slot;
  };

  void RequireUnchanged(const HeldItem& held) {
    const std::span<const std::byte> bytes(store_.region().At(LocationOf(held.slot)),
                                           ItemBytesOf(held.slot));
    ItemView item;
    const ItemExpectation expected{.incarnation = store_.region().geometry().incarnation,
                                   .location = LocationOf(held.slot),
                                   .key = held.key,
                                   .held_version = held.version};
    REQUIRE(JudgeItem(bytes, expected, item) == ItemVerdict::kCurrent);
    REQUIRE(item.version == held.version);
    REQUIRE(item.value == held.value);
  }

  void Check() {
    KVD_REQUIRE_OK(store_.CheckInvariants());
    for (const HeldItem& held : held_) RequireUnchanged(held);
    uint64_t items = 0;
    for (uint32_t i = 0; i < mix_.shard_count; ++i) items += store_.shard(i).stats().items;
    REQUIRE(items == model_.size());
    for (const auto& [key, known] : model_) {
      if (store_.Get(key) != known.value) FAIL("the store does not have what was put");
      if (reader_.Get(key) != known.value) FAIL("a reader does not find what was put");
    }
  }

  void RequireReached() {
    uint64_t splits = 0;
    for (uint32_t i = 0; i < mix_.shard_count; ++i) {
      const ShardStats stats = store_.shard(i).stats();
      splits += stats.splits;
      REQUIRE(stats.deletes > 0);
      REQUIRE(stats.overwrites_in_place > 0);
      REQUIRE(stats.overwrites_moved > 0);
      most_overflow_ = std::max(most_overflow_, stats.overflow_headers);
    }
    CAPTURE(splits, refused_, most_overflow_);
    if (mix_.expect_splits) REQUIRE(splits > 0);
    if (mix_.expect_refusals) REQUIRE(refused_ > 0);
    if (mix_.expect_overflow) REQUIRE(most_overflow_ > 0);
  }

  void DeleteEverything() {
    for (const Pending& pending : reservations_)
      store_.ShardOfKey(pending.key).Abort(pending.reservation);
    for (const HeldItem& held : held_) store_.ShardOfKey(held.key).Release(held.slot);
    held_.clear();
    reservations_.clear();
    while (!model_.empty()) Delete(std::string(model_.begin()->first));
    KVD_REQUIRE_OK(store_.CheckInvariants());
    for (uint32_t i = 0; i < mix_.shard_count; ++i) {
      REQUIRE(store_.shard(i).stats().heap_used_bytes == 0);
      REQUIRE(store_.shard(i).stats().user_bytes == 0);
      REQUIRE(store_.shard(i).stats().overflow_headers == 0);
    }
  }

  struct Pending {
    std::string key;
    std::string value;
    Reservation reservation;
  };

  const Mix mix_;
  Random random_;
  TestStore store_;
  ReferenceReader reader_;
  std::vector<std::string> keys_;
  std::map<std::string, Known> model_;
  std::map<std::string, uint64_t> versions_;
  std::vector<Pending> reservations_;
  std::vector<HeldItem> held_;
  uint64_t step_ = 0;
  uint64_t refused_ = 0;
  uint64_t most_overflow_ = 0;
};

TEST_CASE("Model: small items behave as in a map") {
  Model({.keys = 20'000,
         .value_bytes_max = 64,
         .operations = 150'000,
         .check_every = 30'000,
         .expect_splits = true,
         .expect_overflow = true})
      .Run();
}

TEST_CASE(
    "Model: few keys, all sizes around the limits of local space and pages, behave as in a map") {
  Model({.keys = 300, .key_bytes_max = 200, .value_bytes_max = 1200, .long_value_one_in = 20})
      .Run();
}

TEST_CASE("Model: keys up to the longest behave as in a map") {
  Model({.keys = 500,
         .key_bytes_max = kKeyBytesMax,
         .value_bytes_max = 5000,
         .memory_bytes = 32 * kMiB})
      .Run();
}

TEST_CASE("Model: a region that is full nearly all the time behaves as a map that refuses") {
  Model({.keys = 3'000, .value_bytes_max = 4000, .long_value_one_in = 10, .memory_bytes = 4 * kMiB})
      .Run();
}

TEST_CASE("Model: a region full of small items has long chains and behaves as a map that refuses") {
  Model({.keys = 60'000,
         .value_bytes_max = 100,
         .memory_bytes = 4 * kMiB,
         .operations = 300'000,
         .check_every = 50'000,
         .expect_refusals = true,
         .expect_splits = true,
         .expect_overflow = true})
      .Run();
}

TEST_CASE("Model: several shards and other bucket sizes behave as in a map") {
  Model({.keys = 10'000, .shard_count = 3, .bucket_bytes = kBucketBytesMin}).Run();
  Model({.keys = 10'000, .shard_count = 2, .bucket_bytes = kBucketBytesMax}).Run();
}

}  // namespace
}  // namespace kvd::test
