// A client that remembers something that cannot be: whatever a slot says, it is not followed out of
// the region, and the key is found all the same.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/internal/location_cache.h"
#include "client/kv_client.h"
#include "common/base/hash.h"
#include "common/layout/slot.h"
#include "tests/simulation/simulated_kvd.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct Fixture {
  Fixture() {
    kvd = SimulatedKvd::Create({}).value();
    ClientOptions options;
    options.location_cache = cache;
    client = kvd->Connect(mapped, options).value();
    KVD_REQUIRE_OK(client->Put("k", "v"));
    KVD_REQUIRE_OK(client->Put("other", "o"));
    // With the bucket's place known, every kind of GET begins in the quickest way that it has.
    cache->Forget(HashOf("k"));
    REQUIRE(client->Get("k").value() == "v");
  }

  uint64_t HashOf(std::string_view key) const { return HashKey(key, kvd->geometry().hash_seed()); }

  // The key seems to lie there.
  void Plant(uint64_t item_bytes, uint64_t offset) {
    const uint64_t hash = HashOf("k");
    cache->Remember(hash, PackSlot(SlotTag(hash), item_bytes, RegionOffset{offset}));
  }

  std::unique_ptr<SimulatedKvd> kvd;
  const std::shared_ptr<LocationCache> cache = LocationCache::Create(1024).value();
  const bool mapped = GENERATE(false, true);
  std::unique_ptr<Client> client;
};

std::string GetOne(Client& client) {
  std::string value;
  return client.Get("k", value).ok() ? value : "";
}

std::string GetManyOf(Client& client) {
  const std::vector<std::string_view> keys = {"other", "k"};
  std::vector<GetResult> results(keys.size());
  KVD_REQUIRE_OK(client.MultiGet(keys, results));
  return results[0].status.ok() && results[1].status.ok() ? results[1].value : "";
}

std::string GetStarted(Client& client) {
  client.StartGet("k", Async{});
  Completion completion;
  while (client.outstanding() != 0) client.Poll(std::span(&completion, 1));
  return completion.status.ok() ? completion.value : "";
}

std::string GetIntoBuffer(Client& client) {
  const Buffer buffer = client.AllocateBuffer(4096).value();
  const auto length = client.GetInto("k", buffer);
  return length.ok() ? std::string(buffer.data(), *length) : "";
}

}  // namespace

TEST_CASE_METHOD(Fixture, "Remembered slot: one that leads out of the region is not followed") {
  const auto get = GENERATE(GetOne, GetManyOf, GetStarted, GetIntoBuffer);
  CAPTURE(mapped);
  const uint64_t end = kvd->geometry().region_bytes;
  const uint64_t farthest = kLocationUnitsMax * kLocationUnitBytes;
  const uint64_t by_request = client->counters().gets_by_request;
  for (const uint64_t bytes :
       {uint64_t{32}, uint64_t{2040}, uint64_t{1} << 16, uint64_t{1} << 40}) {
    for (const uint64_t offset : {end - 8, end, end + 8, farthest}) {
      CAPTURE(bytes, offset);
      Plant(bytes, offset);
      CHECK(get(*client) == "v");
    }
    CAPTURE(bytes);
    Plant(bytes, 8);  // longer than any item, or none of this place
    CHECK(get(*client) == "v");
  }
  CHECK(client->counters().gets_by_request == by_request);
  CHECK(client->counters().reconnects == 0);
}

TEST_CASE_METHOD(Fixture,
                 "Remembered slot: one of another key is judged, and the key found elsewhere") {
  const auto get = GENERATE(GetOne, GetManyOf, GetStarted, GetIntoBuffer);
  CAPTURE(mapped);
  const Slot others = cache->Find(HashOf("other"));
  REQUIRE(others != kEmptySlot);
  const uint64_t stale = client->counters().stale_locations;
  cache->Remember(HashOf("k"), others);
  CHECK(get(*client) == "v");
  CHECK(client->counters().stale_locations == stale + 1);
  CHECK(cache->Find(HashOf("k")) != others);
}

}  // namespace kvd::test
