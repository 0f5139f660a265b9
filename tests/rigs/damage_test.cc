// Bits that flip in kvd's memory: no read returns the bytes, however it is made and whatever kvd
// has done with the item in between, and it says so.
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/rigs/process_memory.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::seconds;

// Values that travel in a frame and such that are too long for it, in their bucket and in the heap.
constexpr std::array<size_t, 6> kSizes = {16, 64, 700, 3000, 20'000, 300'000};

// A kvd, a value of each size, and a way to damage them.
class Damage {
 public:
  Damage() : random_(Seed()) {
    KVD_REQUIRE_OK(kvd_.Start(std::getenv("KVD"), {"--memory=64m", "--pollers=2"}));
    auto memory = ProcessMemory::Open(kvd_.pid());
    if (!memory.ok()) KVD_SKIP(MessageOf(memory));
    memory_ = *std::move(memory);
    client_ = ConnectTo(kvd_);
    for (const size_t bytes : kSizes) {
      std::string value(bytes, '\0');
      for (char& c : value) c = static_cast<char>('a' + random_.Uniform(26));
      KVD_REQUIRE_OK(client_->Put(KeyOf(bytes), value));
      values_.push_back(value);
    }
  }

  static std::string KeyOf(size_t bytes) { return absl::StrCat("value of ", bytes); }

  // One bit of the value, or of what lies before it: key and lengths.
  void FlipInEach(bool before_value) {
    for (const std::string& value : values_) {
      const std::vector<uint64_t> places = memory_->Find(value);
      REQUIRE(places.size() == 1);
      uint64_t at = places[0] + random_.Uniform(value.size());
      // The header's first word holds the state, which says that the item is of no use or that it
      // is.
      if (before_value) at = places[0] - 1 - random_.Uniform(KeyOf(value.size()).size());
      memory_->FlipBit(at, static_cast<uint32_t>(random_.Uniform(8)));
    }
    std::cout << "bits_flipped " << values_.size() << "\n";
  }

  // Every way of reading, by a client that comes now and one that knew the places before.
  void RequireNoneReturned(Client& knowing) {
    ClientOptions whole;
    whole.read_whole_buckets = true;
    const auto fresh = ConnectTo(kvd_, whole);
    for (const std::string& value : values_) {
      const std::string key = KeyOf(value.size());
      CAPTURE(key);
      for (Client* client : {&knowing, fresh.get(), client_.get()}) RequireDataLoss(*client, key);
    }
  }

  void RequireDataLoss(Client& client, const std::string& key) {
    std::string value;
    KVD_REQUIRE_CODE(client.Get(key, value), kDataLoss);
    const std::string_view keys[] = {key};
    GetResult results[1];
    KVD_REQUIRE_OK(client.MultiGet(keys, results));
    KVD_REQUIRE_CODE(results[0].status, kDataLoss);
    client.StartGet(key, {});
    Completion completion;
    REQUIRE(client.Wait({&completion, 1}, seconds(10)) == 1);
    KVD_REQUIRE_CODE(completion.status, kDataLoss);
  }

  // What was damaged is as good as new when it is written, or gone.
  void RequireMended() {
    for (const std::string& value : values_) {
      const std::string key = KeyOf(value.size());
      KVD_REQUIRE_OK(client_->Put(key, value));
      REQUIRE(client_->Get(key).value() == value);
    }
  }

  Random random_;
  KvdProcess kvd_;
  std::unique_ptr<ProcessMemory> memory_;
  std::unique_ptr<Client> client_;
  std::vector<std::string> values_;
};

}  // namespace

TEST_CASE(
    "Damage: a flipped bit is never returned, by any way of reading, and is told and counted") {
  Damage damage;
  ClientOptions remembering;
  remembering.location_cache_entries = 64;
  const auto knowing = ConnectTo(damage.kvd_, remembering);
  for (const size_t bytes : kSizes) KVD_REQUIRE_OK(knowing->Get(Damage::KeyOf(bytes)).status());
  damage.FlipInEach(/*before_value=*/false);
  damage.RequireNoneReturned(*knowing);
  CHECK(Stat(*damage.client_, "damaged_items_met") > 0);
  damage.RequireMended();
  KVD_REQUIRE_OK(knowing->Put("another", "value"));
}

TEST_CASE("Damage: of a key's own bytes is told too, and not taken for a miss") {
  Damage damage;
  damage.FlipInEach(/*before_value=*/true);
  damage.RequireNoneReturned(*damage.client_);
}

TEST_CASE("Damage: writes that build on what is there refuse it, and change nothing") {
  Damage damage;
  KVD_REQUIRE_OK(damage.client_->Put("number", "1234567890123"));
  const std::vector<uint64_t> places = damage.memory_->Find("number1234567890123");
  REQUIRE(places.size() == 1);
  damage.memory_->FlipBit(places[0] + 6, 0);  // another digit
  damage.FlipInEach(/*before_value=*/false);
  KVD_REQUIRE_CODE(damage.client_->Increment("number", 1).status(), kDataLoss);
  WriteOptions ttl;
  ttl.ttl = seconds(1000);
  for (const size_t bytes : kSizes) {
    const std::string key = Damage::KeyOf(bytes);
    CAPTURE(key);
    KVD_REQUIRE_CODE(damage.client_->Append(key, "more").status(), kDataLoss);
    KVD_REQUIRE_CODE(damage.client_->Prepend(key, "more").status(), kDataLoss);
    KVD_REQUIRE_CODE(damage.client_->Touch(key, ttl).status(), kDataLoss);
    std::string value;
    KVD_REQUIRE_CODE(damage.client_->GetAndTouch(key, value, nullptr, ttl), kDataLoss);
  }
  damage.RequireNoneReturned(*damage.client_);
  damage.RequireMended();
}

TEST_CASE("Damage: an item that moves as the table grows and shrinks stays damaged") {
  Damage damage;
  damage.FlipInEach(/*before_value=*/false);
  const uint64_t splits = Stat(*damage.client_, "splits");
  std::vector<std::string> keys;
  for (int i = 0; Stat(*damage.client_, "splits") < splits + 5000; ++i) {
    for (int more = 0; more < 1000; ++more) {
      keys.push_back(absl::StrCat("key ", i, " ", more));
      KVD_REQUIRE_OK(damage.client_->Put(keys.back(), "v"));
    }
  }
  damage.RequireNoneReturned(*damage.client_);
  for (const std::string& key : keys) KVD_REQUIRE_OK(damage.client_->Delete(key));
  REQUIRE(Eventually([&] { return Stat(*damage.client_, "merges") >= 1000; }));
  damage.RequireNoneReturned(*damage.client_);
  damage.RequireMended();
}

TEST_CASE("Damage: a scan does not return it") {
  Damage damage;
  damage.FlipInEach(/*before_value=*/false);
  uint64_t visited = 0;
  const auto scanned = damage.client_->Scan(
      [&](std::string_view, std::string_view, const ItemInfo&) {
        ++visited;
        return true;
      },
      {.deadline = seconds(10)});
  KVD_REQUIRE_CODE(scanned.status(), kDataLoss);
  CHECK(visited == 0);
}

}  // namespace kvd::test
