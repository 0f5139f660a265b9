// Every kind of write, with conditions, expiry and user flags, against a std::map: random
// operations by seed, with the clock moving, the sweep running, and in some runs with eviction.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct Mix {
  uint64_t keys = 500;
  uint64_t value_bytes_max = 300;
  uint64_t memory_bytes = 8 * kMiB;
  uint32_t shard_count = 1;
  bool evict = false;
  uint64_t operations = 60'000 / kSanitizerFactor;
};

constexpr uint64_t kValueMax = 20'000;

class WritesModel {
 public:
  explicit WritesModel(const Mix& mix)
      : mix_(mix),
        random_(Seed()),
        store_(
            {.memory_bytes = mix.memory_bytes, .shard_count = mix.shard_count, .evict = mix.evict}),
        reader_(store_.region().base()) {}

  void Run() {
    for (step_ = 1; step_ <= mix_.operations; ++step_) {
      Step();
      if (step_ % 5000 == 0) CheckAll();
    }
    CheckAll();
    FlushAll("");
    KVD_REQUIRE_OK(store_.CheckInvariants());
    CHECK(seen_[StoreStatus::kConditionFailed] > 0);
    CHECK(seen_[StoreStatus::kNotFound] > 0);
    CHECK(seen_[StoreStatus::kNotNumber] > 0);
    CHECK(seen_[StoreStatus::kOverflow] > 0);
    CHECK(seen_[StoreStatus::kTooLarge] > 0);
    uint64_t expired = 0;
    uint64_t evicted = 0;
    for (uint32_t i = 0; i < mix_.shard_count; ++i) {
      const ShardStats stats = store_.shard(i).stats();
      expired += stats.expired_items;
      evicted += stats.evicted_items;
      CHECK(stats.items == 0);
      CHECK(stats.expiring_items == 0);
      CHECK(stats.heap_used_bytes == 0);
    }
    CHECK(expired > 0);
    CHECK((evicted > 0) == mix_.evict);
  }

 private:
  struct Known {
    std::string value;
    uint64_t version = 0;
    ItemExtras extras;
  };
  struct Pending {
    std::string key;
    std::string value;
    Reservation reservation;
  };

  void Expect(bool holds, const char* what) const {
    if (!holds) FAIL("operation " << step_ << ": not so: " << what);
  }

  uint64_t Now() const { return store_.now_unix_us(); }
  bool Lapsed(uint64_t expiry_unix_us) const {
    return expiry_unix_us != 0 && expiry_unix_us <= Now();
  }

  Known* Find(const std::string& key) {
    const auto found = model_.find(key);
    if (found == model_.end()) return nullptr;
    const bool evicted = mix_.evict && !store_.ShardOfKey(key).Peek(key, store_.Hash(key));
    if (!evicted && !Lapsed(found->second.extras.expiry_unix_us)) return &found->second;
    model_.erase(found);
    return nullptr;
  }

  std::string NewValue() {
    if (random_.OneIn(4)) {
      return std::to_string(random_.OneIn(3) ? INT64_MAX - static_cast<int64_t>(random_.Uniform(3))
                                             : static_cast<int64_t>(random_.Next()));
    }
    uint64_t max = mix_.value_bytes_max;
    if (random_.OneIn(30)) max = kValueMax;
    return std::string(random_.Between(0, max), static_cast<char>('a' + random_.Uniform(26)));
  }

  StoreOptions NewOptions(const Known* known) {
    StoreOptions options;
    options.condition = static_cast<WriteCondition>(random_.OneIn(2) ? 0 : random_.Uniform(4));
    if (options.condition == WriteCondition::kIfVersion) {
      options.version =
          known != nullptr && !random_.OneIn(3) ? known->version : random_.Next() >> 2;
    }
    if (random_.OneIn(3)) {
      options.extras.expiry_unix_us =
          random_.OneIn(20) ? random_.Between(1, Now()) : Now() + random_.Between(1, 5'000'000);
    }
    if (random_.OneIn(3)) options.extras.user_flags = static_cast<uint32_t>(random_.Next());
    return options;
  }

  static StoreStatus Judge(const StoreOptions& options, const Known* known) {
    switch (options.condition) {
      case WriteCondition::kNone:
        return StoreStatus::kOk;
      case WriteCondition::kIfAbsent:
        return known == nullptr ? StoreStatus::kOk : StoreStatus::kConditionFailed;
      case WriteCondition::kIfPresent:
        return known == nullptr ? StoreStatus::kNotFound : StoreStatus::kOk;
      case WriteCondition::kIfVersion:
        if (known == nullptr) return StoreStatus::kNotFound;
        return known->version == options.version ? StoreStatus::kOk : StoreStatus::kConditionFailed;
    }
    return StoreStatus::kOk;
  }

  // The store's answer to a write that the model expects to end with `status`, and on kOk to leave
  // `value` with `extras`.
  void Accept(const std::string& key, const StoreResult& result, StoreStatus status,
              std::string value, const ItemExtras& extras) {
    ++seen_[result.status];
    if (result.status == StoreStatus::kNoSpace) return;
    Expect(result.status == status, "status");
    if (status == StoreStatus::kConditionFailed) {
      Expect(result.version == model_.at(key).version, "version of the item that is there");
    }
    if (status != StoreStatus::kOk) return;
    Expect(result.version > versions_[key], "version > earlier versions");
    versions_[key] = result.version;
    Expect(result.expiry_unix_us == extras.expiry_unix_us, "expiry in the answer");
    model_.erase(key);
    Expect((result.slot == kEmptySlot) == Lapsed(extras.expiry_unix_us), "slot");
    if (result.slot != kEmptySlot) model_[key] = {std::move(value), result.version, extras};
    CheckKey(key);
  }

  void CheckKey(const std::string& key) {
    const Known* known = Find(key);
    ItemView item;
    Slot slot = kEmptySlot;
    const bool found = store_.ShardOfKey(key).Find(key, store_.Hash(key), item, slot) == StoreStatus::kOk;
    Expect(found == (known != nullptr), "found");
    const std::optional<std::string> read = reader_.Get(key);
    Expect(read.has_value() == found, "found by a reader");
    if (!found) return;
    Expect(item.value == known->value && *read == known->value, "value");
    Expect(item.version == known->version, "version");
    Expect(item.expiry_unix_us == known->extras.expiry_unix_us, "expiry");
    Expect(item.user_flags == known->extras.user_flags, "user flags");
  }

  void Step() {
    if (random_.OneIn(4)) store_.clock().AdvanceMs(static_cast<int64_t>(random_.Uniform(50)));
    store_.RefreshClocks();
    const std::string key = "key" + std::to_string(random_.Uniform(mix_.keys));
    switch (random_.Uniform(12)) {
      case 0:
        return Delete(key);
      case 1:
        return CheckKey(key);
      case 2:
      case 3:
        return Increment(key);
      case 4:
      case 5:
        return Extend(key);
      case 6:
        return Touch(key);
      case 7:
        return Reserve(key);
      case 8:
        return Settle();
      case 9:
        for (int i = 0; i < 8; ++i) store_.ShardOfKey(key).Work();
        return;
      case 10:
        if (random_.OneIn(300)) FlushAll("key1");
        return;
      default:
        return Put(key);
    }
  }

  void Put(const std::string& key) {
    const Known* known = Find(key);
    const StoreOptions options = NewOptions(known);
    const StoreStatus expected = Judge(options, known);
    const std::string value = NewValue();
    Accept(key, store_.Put(key, value, options), expected, value, options.extras);
  }

  void Delete(const std::string& key) {
    const Known* known = Find(key);
    StoreOptions options = NewOptions(known);
    if (options.condition != WriteCondition::kIfVersion) options.condition = WriteCondition::kNone;
    const StoreStatus expected = known == nullptr ? StoreStatus::kNotFound : Judge(options, known);
    const StoreResult result = store_.Delete(key, options);
    ++seen_[result.status];
    Expect(result.status == expected, "status of a delete");
    if (expected == StoreStatus::kOk) {
      Expect(result.version > versions_[key], "version of a delete");
      versions_[key] = result.version;
      model_.erase(key);
    }
    CheckKey(key);
  }

  // Independent of how the store does it: digits of a number that fits, as printf writes them.
  static std::optional<int64_t> NumberOf(const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const long long number = std::strtoll(text.c_str(), &end, 10);
    if (errno != 0 || std::to_string(number) != text) return std::nullopt;
    return number;
  }

  void Increment(const std::string& key) {
    const Known* known = Find(key);
    const StoreOptions options = NewOptions(known);
    StoreStatus expected = Judge(options, known);
    const auto delta = random_.OneIn(2) ? static_cast<int64_t>(random_.Between(0, 4)) - 2
                                        : static_cast<int64_t>(random_.Next());
    int64_t sum = 0;
    if (expected == StoreStatus::kOk) {
      const std::optional<int64_t> before = known == nullptr ? 0 : NumberOf(known->value);
      if (!before) {
        expected = StoreStatus::kNotNumber;
      } else if (const __int128 wide = static_cast<__int128>(*before) + delta;
                 wide > INT64_MAX || wide < INT64_MIN) {
        expected = StoreStatus::kOverflow;
      } else {
        sum = static_cast<int64_t>(wide);
      }
    }
    const ItemExtras extras = Kept(known, options);
    const StoreResult result = store_.Increment(key, delta, options);
    if (expected == StoreStatus::kOk && result.status == expected) {
      Expect(result.number == sum, "sum");
    }
    Accept(key, result, expected, std::to_string(sum), extras);
  }

  static ItemExtras Kept(const Known* known, const StoreOptions& options) {
    if (known == nullptr) return options.extras;
    ItemExtras extras = known->extras;
    if (options.extras.expiry_unix_us != 0) extras.expiry_unix_us = options.extras.expiry_unix_us;
    return extras;
  }

  void Extend(const std::string& key) {
    const Known* known = Find(key);
    const StoreOptions options = NewOptions(known);
    StoreStatus expected = Judge(options, known);
    const std::string piece = NewValue();
    const std::string before = known == nullptr ? "" : known->value;
    const Shard::End end = random_.OneIn(2) ? Shard::End::kBack : Shard::End::kFront;
    const std::string after = end == Shard::End::kBack ? before + piece : piece + before;
    const uint64_t limit = random_.OneIn(8) ? random_.Uniform(2 * mix_.value_bytes_max) : kValueMax;
    if (expected == StoreStatus::kOk && after.size() > limit) expected = StoreStatus::kTooLarge;
    const ItemExtras extras = Kept(known, options);
    Accept(key, store_.Extend(key, end, piece, options, limit), expected, after, extras);
  }

  void Touch(const std::string& key) {
    const Known* known = Find(key);
    StoreOptions options = NewOptions(known);
    if (options.condition != WriteCondition::kIfVersion) options.condition = WriteCondition::kNone;
    const StoreStatus expected = known == nullptr ? StoreStatus::kNotFound : Judge(options, known);
    const std::string value = known == nullptr ? "" : known->value;
    const ItemExtras extras{options.extras.expiry_unix_us,
                            known == nullptr ? 0 : known->extras.user_flags};
    Accept(key, store_.Touch(key, options), expected, value, extras);
  }

  void Reserve(const std::string& key) {
    if (pending_.size() >= 8) return;
    const Known* known = Find(key);
    const StoreOptions options = NewOptions(known);
    const StoreStatus expected = Judge(options, known);
    Pending pending{key, NewValue(), {}};
    const StoreResult result = store_.ShardOfKey(key).Reserve(
        key, store_.Hash(key), pending.value.size(), pending.reservation, options);
    ++seen_[result.status];
    if (result.status == StoreStatus::kNoSpace) return;
    Expect(result.status == expected, "status of a reservation");
    if (expected != StoreStatus::kOk) return;
    if (!pending.value.empty()) {
      std::memcpy(pending.reservation.value, pending.value.data(), pending.value.size());
    }
    pending_.push_back(pending);
  }

  void Settle() {
    if (pending_.empty()) return;
    const Pending pending = pending_.back();
    pending_.pop_back();
    if (random_.OneIn(4)) return store_.ShardOfKey(pending.key).Abort(pending.reservation);
    const StoreOptions& options = pending.reservation.options;
    const StoreStatus expected = Judge(options, Find(pending.key));
    Accept(pending.key, store_.ShardOfKey(pending.key).Commit(pending.reservation), expected,
           pending.value, options.extras);
  }

  void FlushAll(std::string_view prefix) {
    while (prefix.empty() && !pending_.empty()) Settle();
    for (uint32_t i = 0; i < mix_.shard_count; ++i) {
      uint32_t position = 0;
      do {
        position = store_.shard(i).Flush(prefix, position).next_position;
      } while (position != 0);
    }
    std::erase_if(model_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
  }

  void CheckAll() {
    KVD_REQUIRE_OK(store_.CheckInvariants());
    store_.RefreshClocks();
    for (uint64_t i = 0; i < mix_.keys; ++i) CheckKey("key" + std::to_string(i));
  }

  const Mix mix_;
  Random random_;
  TestStore store_;
  ReferenceReader reader_;
  std::map<std::string, Known> model_;
  std::map<std::string, uint64_t> versions_;
  std::map<StoreStatus, uint64_t> seen_;
  std::vector<Pending> pending_;
  uint64_t step_ = 0;
};

TEST_CASE("Model: writes of every kind to few keys behave as in a map") {
  WritesModel({.keys = 60}).Run();
}

TEST_CASE("Model: writes of every kind behave as in a map while the table grows") {
  WritesModel({.keys = 15'000, .memory_bytes = 32 * kMiB, .operations = 150'000 / kSanitizerFactor})
      .Run();
}

TEST_CASE("Model: writes of every kind over several shards behave as in a map") {
  WritesModel({.keys = 2000, .memory_bytes = 16 * kMiB, .shard_count = 3}).Run();
}

TEST_CASE("Model: with eviction, what is there is what was put last") {
  WritesModel({.keys = 6000,
               .value_bytes_max = 2500,
               .memory_bytes = 4 * kMiB,
               .evict = true,
               .operations = 80'000})
      .Run();
}

}  // namespace
}  // namespace kvd::test
