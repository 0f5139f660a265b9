// Readers at every step of the writer. The store is built so that it calls back between any two
// steps of an update (KVD_STEPPED_STORES, server/store/region_writes.h); there some of many GETs
// that are under way do one of their reads each. So every GET meets the region in the state between
// two steps, and its reads lie any number of steps, whole operations, or a growth and a contraction
// of the table apart. What it says in the end must be right at a moment since it began: a value
// that was current then, or a miss while the key was there none.
#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/internal/get_machine.h"
#include "client/internal/window_get.h"
#include "common/base/hash.h"
#include "common/base/random.h"
#include "server/store/region_writes.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

#if !defined(KVD_STEPPED_STORES)
#error "to be built with KVD_STEPPED_STORES"
#endif

namespace kvd::test {
namespace {

struct Traffic {
  uint64_t keys = 9'000;
  uint64_t rounds = 4;                // of filling and emptying
  uint64_t large_bytes = 60'000;      // of values that take the memory that the index gave back
  uint64_t memory_bytes = 16 * kMiB;  // more than all of it needs, unless it evicts
  uint32_t bucket_bytes = kBucketBytesMax;  // few buckets in the first segment
  bool evict = false;
};

class SteppedStore {
 public:
  explicit SteppedStore(const Traffic& traffic)
      : traffic_(traffic),
        random_(Seed()),
        store_({.memory_bytes = traffic.memory_bytes,
                .bucket_bytes = traffic.bucket_bytes,
                .evict = traffic.evict}),
        begun_(traffic.keys),
        done_(traffic.keys),
        deleted_(traffic.keys) {
    for (uint64_t number = 0; number < traffic.keys; ++number) {
      by_order_.push_back({WalkOrder(store_.Hash(KeyOf(number))), number});
    }
    std::sort(by_order_.begin(), by_order_.end());
    for (uint32_t i = 0; i < kReaders; ++i) readers_.push_back(std::make_unique<Reader>(store_, i));
    current_ = this;
    between_stores = [] { current_->OnStep(); };
  }
  ~SteppedStore() { between_stores = nullptr; }

  void Run() {
    for (uint64_t round = 0; round < traffic_.rounds; ++round) {
      Phase(traffic_.keys * 2, /*deletes_percent=*/5);
      PutLarge(8);
      Phase(traffic_.keys * 2, /*deletes_percent=*/95);
      PutLarge(24);
      DeleteLarge();
      KVD_REQUIRE_OK(store_.CheckInvariants());
    }
    CAPTURE(found_, missed_, asked_, steps_);
    REQUIRE(errors_ == "");
    REQUIRE(found_ > 1000);
    REQUIRE(missed_ > 1000);
    REQUIRE(asked_ * 100 < found_);
  }

  ShardStats stats() { return store_.shard().stats(); }
  GetMachineCounters counters() const {
    GetMachineCounters sum;
    for (const auto& reader : readers_) sum += reader->machine.counters();
    return sum;
  }

 private:
  static constexpr uint32_t kReaders = 24;

  struct Reader {
    Reader(TestStore& store, uint32_t index)
        : map(store.region().geometry(), kMiB),
          machine(map, /*whole_buckets=*/index % 2 == 0),
          window(store.region().base(), &ended, map),
          pace(1 + (index / 2) * (index / 2) * (index / 2)) {}

    RegionMap map;
    GetMachine machine;
    const uint32_t ended = 0;  // as ClientChannel::ended
    WindowGet window;
    const uint64_t pace;  // one read in so many steps
    bool busy = false;
    bool may_miss = false;  // the key was absent at a moment since the GET began
    uint64_t number = 0;
    std::string key;
    uint64_t before = 0;
    Slot remembered = kEmptySlot;
    std::vector<std::byte> bytes[3];
  };

  // A GET's answer, to be judged when it is known what became of the key in this operation.
  struct Answer {
    uint64_t number;
    bool found;
    std::string value;
    uint64_t before;
    bool may_miss;
  };

  static std::string KeyOf(uint64_t number) { return "key" + std::to_string(number); }

  std::string ValueOf(uint64_t number, uint64_t generation) const {
    Random random(Mix64(number) + generation);
    const uint64_t bytes_max = random.OneIn(8) ? 2000 : 300;
    std::string value(8 + random.Uniform(bytes_max), static_cast<char>(random.Next()));
    std::memcpy(value.data(), &generation, sizeof(generation));
    return value;
  }

  void Phase(uint64_t operations, uint64_t deletes_percent) {
    for (uint64_t i = 0; i < operations; ++i) {
      const uint64_t number = random_.OneIn(2) ? i % traffic_.keys : PickKey();
      if (random_.Uniform(100) < deletes_percent) {
        Delete(number);
      } else {
        Put(number);
      }
      if (random_.OneIn(16)) HoldOrRelease();
      EndOperation();
      for (uint64_t steps = random_.Uniform(4); steps > 0; --steps) {
        store_.shard().Work();
        EndOperation();
      }
    }
    while (!held_.empty()) Release();
    while (store_.shard().Work()) EndOperation();
  }

  void Put(uint64_t number) {
    const std::string key = KeyOf(number);
    const uint64_t generation = done_[number] + 1;
    if (!IsThere(number)) deleted_[number] = done_[number];  // evicted before this
    begun_[number] = generation;
    const uint64_t evicted_before = stats().evicted_items;
    const StoreResult result =
        store_.shard().Put(key, store_.Hash(key), ValueOf(number, generation));
    // It may have been this key that went, for the table to grow, before it was written.
    if (stats().evicted_items != evicted_before) deleted_[number] = done_[number];
    if (result.status != StoreStatus::kOk) Fail("a PUT found no room");
    done_[number] = generation;
  }

  void Delete(uint64_t number) {
    const std::string key = KeyOf(number);
    const uint64_t generation = done_[number] + 1;
    begun_[number] = deleted_[number] = generation;
    store_.shard().Delete(key, store_.Hash(key));
    done_[number] = generation;
  }

  void PutLarge(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = "large" + std::to_string(large_++);
      const std::string value(traffic_.large_bytes, static_cast<char>(random_.Next()));
      if (store_.shard().Put(key, store_.Hash(key), value).status != StoreStatus::kOk) {
        Fail("a large PUT found no room");
      }
      EndOperation();
    }
  }

  void DeleteLarge() {
    for (; large_ > 0; --large_) {
      const std::string key = "large" + std::to_string(large_ - 1);
      store_.shard().Delete(key, store_.Hash(key));
      EndOperation();
    }
  }

  // Held bytes must stay what they were, wherever their item goes.
  void HoldOrRelease() {
    if (held_.empty() || (held_.size() < 6 && random_.OneIn(2))) {
      const std::string key = KeyOf(PickKey());
      ItemView item;
      Slot slot;
      if (store_.shard().Find(key, store_.Hash(key), item, slot) != StoreStatus::kOk) return;
      store_.shard().Hold(slot);
      held_.push_back({slot, item.version, std::string(item.value), key});
      return;
    }
    Release();
  }

  void Release() {
    const HeldItem held = held_.front();
    held_.pop_front();
    ItemView item;
    const ItemExpectation expected{.incarnation = store_.region().geometry().incarnation,
                                   .location = LocationOf(held.slot),
                                   .key = held.key,
                                   .held_version = held.version};
    const std::span<const std::byte> bytes(store_.region().At(LocationOf(held.slot)),
                                           ItemBytesOf(held.slot));
    if (JudgeItem(bytes, expected, item) != ItemVerdict::kCurrent || item.version != held.version) {
      // In place it may have been overwritten before it was held; never after.
      Fail("a held item has changed");
    } else if (item.value != held.value) {
      Fail("a held value has changed");
    }
    store_.shard().Release(held.slot);
  }

  // Often a key of the two buckets that the next split or merge is about.
  uint64_t PickKey() {
    if (random_.OneIn(2)) return random_.Uniform(traffic_.keys);
    const uint32_t last = store_.shard().buckets() - (random_.OneIn(2) ? 0 : 1);
    const uint32_t bits = static_cast<uint32_t>(std::bit_width(last));
    const BucketIndex bucket{random_.OneIn(2) ? last : last - std::bit_floor(last)};
    const auto begin =
        std::lower_bound(by_order_.begin(), by_order_.end(),
                         std::pair<uint64_t, uint64_t>(WalkOrder(ToNumber(bucket)), 0));
    const auto end = std::lower_bound(begin, by_order_.end(),
                                      std::pair<uint64_t, uint64_t>(WalkEndOf(bucket, bits), 0));
    if (begin == end) return random_.Uniform(traffic_.keys);
    return begin[static_cast<ptrdiff_t>(random_.Uniform(static_cast<uint64_t>(end - begin)))]
        .second;
  }

  void OnStep() {
    if (looking_) return;
    looking_ = true;
    ++steps_;
    for (const auto& reader : readers_) {
      if (reader->pace == 1 || random_.OneIn(reader->pace)) Advance(*reader);
    }
    looking_ = false;
  }

  void Advance(Reader& reader) {
    if (!reader.busy) return Begin(reader);
    const GetMachine::Read& read = reader.machine.read();
    std::vector<std::byte>& into = reader.bytes[static_cast<size_t>(read.into)];
    if (into.size() < read.length) into.resize(read.length);
    if (ToBytes(read.offset) + read.length > store_.region().bytes()) {
      return Fail("a read outside of the region");
    }
    std::memcpy(into.data(), store_.region().At(read.offset), read.length);
    Settle(reader, reader.machine.Resume(std::span(into.data(), read.length)));
  }

  void Begin(Reader& reader) {
    reader.number = PickKey();
    reader.key = KeyOf(reader.number);
    reader.before = done_[reader.number];
    reader.may_miss = false;
    reader.busy = true;
    const uint64_t hash = store_.Hash(reader.key);
    ItemView item;
    Slot slot;
    if (random_.OneIn(4) && reader.window.Find(reader.key, hash, item, slot)) {
      reader.busy = false;
      answers_.push_back({reader.number, true, std::string(item.value), reader.before, false});
      return;
    }
    Settle(reader, random_.OneIn(4) ? reader.machine.StartAt(reader.key, hash, reader.remembered)
                                    : reader.machine.Start(reader.key, hash));
  }

  void Settle(Reader& reader, GetMachine::Need need) {
    if (need == GetMachine::Need::kRead) return;
    reader.busy = false;
    if (need == GetMachine::Need::kAskServer) {
      ++asked_;
      return;
    }
    const bool found = need == GetMachine::Need::kFound;
    if (found) reader.remembered = reader.machine.slot();
    answers_.push_back({reader.number, found,
                        found ? std::string(reader.machine.item().value) : std::string(),
                        reader.before, reader.may_miss});
  }

  // What was evicted in this operation is absent until it is put again, so it is enough to look
  // between operations.
  void EndOperation() {
    for (const Answer& answer : answers_) {
      const std::string error = Judge(answer);
      if (!error.empty()) Fail(error);
    }
    answers_.clear();
    for (const auto& reader : readers_) {
      if (reader->busy && !IsThere(reader->number)) reader->may_miss = true;
    }
  }

  bool IsThere(uint64_t number) {
    const std::string key = KeyOf(number);
    return store_.shard().Peek(key, store_.Hash(key));
  }

  std::string Judge(const Answer& answer) {
    const uint64_t after = begun_[answer.number];
    if (!answer.found) {
      ++missed_;
      if (answer.may_miss || deleted_[answer.number] >= answer.before) return "";
      if (!IsThere(answer.number)) return "";
      return "missed a key that was there all the time";
    }
    ++found_;
    uint64_t generation = 0;
    std::memcpy(&generation, answer.value.data(), sizeof(generation));
    if (generation < answer.before || generation > after) {
      return "stale: generation " + std::to_string(generation) + " is not from " +
             std::to_string(answer.before) + " to " + std::to_string(after);
    }
    return answer.value == ValueOf(answer.number, generation) ? "" : "torn";
  }

  void Fail(const std::string& error) {
    if (errors_.size() < 1000) {
      errors_ += error + " (step " + std::to_string(steps_) + ", " +
                 std::to_string(store_.shard().buckets()) + " buckets); ";
    }
  }

  struct HeldItem {
    Slot slot;
    uint64_t version;
    std::string value;
    std::string key;
  };

  static inline SteppedStore* current_ = nullptr;

  const Traffic traffic_;
  Random random_;
  TestStore store_;
  // By key: the generations that were last begun and ended, and the last that is a delete; of a key
  // that was never written, 0.
  std::vector<uint64_t> begun_;
  std::vector<uint64_t> done_;
  std::vector<uint64_t> deleted_;
  std::vector<std::pair<uint64_t, uint64_t>> by_order_;  // of all keys: order, number
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<Answer> answers_;
  std::deque<HeldItem> held_;
  uint64_t large_ = 0;
  uint64_t steps_ = 0, found_ = 0, missed_ = 0, asked_ = 0;
  bool looking_ = false;
  std::string errors_;
};

TEST_CASE("Steps: readers between any two steps of splits and merges miss nothing") {
  SteppedStore stepped({});
  stepped.Run();
  CHECK(stepped.stats().splits > 1000);
  CHECK(stepped.stats().merges > 1000);
  CHECK(stepped.stats().index_bytes_given_back > 4 * kMiB);
  CHECK(stepped.counters().redirects > 100);
  CHECK(stepped.counters().confirmations > 10);
}

TEST_CASE("Steps: the same while items are evicted for large values") {
  SteppedStore stepped({.keys = 20'000,
                        .rounds = 3,
                        .large_bytes = 500'000,
                        .memory_bytes = 5 * kMiB,
                        .bucket_bytes = kBucketBytesMax,
                        .evict = true});
  stepped.Run();
  CHECK(stepped.stats().evicted_items > 1000);
  CHECK(stepped.stats().merges > 100);
  CHECK(stepped.stats().splits > 100);
}

TEST_CASE("Steps: the same while segments move out of the way of larger ones") {
  SteppedStore stepped({.keys = 20'000,
                        .rounds = 8,
                        .large_bytes = 2'500'000,
                        .memory_bytes = 8 * kMiB,
                        .bucket_bytes = kBucketBytesMax,
                        .evict = true});
  stepped.Run();
  CHECK(stepped.stats().segments_moved > 10);
  CHECK(stepped.stats().merges > 100);
}

}  // namespace
}  // namespace kvd::test
