// A kvd that was full of small items has room for others, in the hands of clients.
#include <memory>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "tests/e2e/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kBatch = 256;

// Batches of items of 8 + 64 bytes until `count` have been put or one is refused; how many there
// are.
uint64_t PutSmall(Client& client, uint64_t count) {
  const std::string value(64, 's');
  for (uint64_t put = 0; put < count; put += kBatch) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kBatch; ++i) keys.push_back(std::to_string(10'000'000 + put + i));
    std::vector<PutRequest> puts;
    for (const std::string& key : keys) puts.push_back({key, value});
    for (const auto& result : client.MultiPut(puts)) {
      if (result.ok()) continue;
      KVD_REQUIRE_CODE(result, kResourceExhausted);
      return put;
    }
  }
  return count;
}

uint64_t LargeThatSucceed(Client& client, uint64_t count, uint64_t bytes) {
  const std::string value(bytes, 'L');
  uint64_t succeeded = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string key = "large" + std::to_string(i);
    if (!client.Put(key, value).ok()) continue;
    const auto got = client.Get(key);
    if (got.ok() && *got == value) ++succeeded;
  }
  return succeeded;
}

TEST_CASE("kvd: full of small items, it takes large ones after a flush") {
  const char* const pollers = GENERATE("--pollers=1", "--pollers=4");
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--memory=64m", pollers, "--hugepages=off"});
  REQUIRE(kvd.WaitReady());
  const auto client = Client::Connect("shm:" + dir.Join("s")).value();
  REQUIRE(PutSmall(*client, 2'000'000) < 2'000'000);
  CHECK(LargeThatSucceed(*client, 3, 100'000) == 0);
  KVD_REQUIRE_OK(client->Flush(""));
  CHECK(LargeThatSucceed(*client, 10, 100'000) == 10);
}

TEST_CASE("kvd: full of small items, one that evicts takes large ones, and small ones again") {
  const char* const pollers = GENERATE("--pollers=1", "--pollers=4");
  TempDir dir;
  KvdProcess kvd(
      {"--shm=" + dir.Join("s"), "--memory=24m", pollers, "--hugepages=off", "--evict=lru"});
  REQUIRE(kvd.WaitReady());
  const auto client = Client::Connect("shm:" + dir.Join("s")).value();
  REQUIRE(PutSmall(*client, 300'000) == 300'000);
  CHECK(LargeThatSucceed(*client, 10, 100'000) == 10);
  CHECK(LargeThatSucceed(*client, 500, 100'000) == 500);
  CHECK(PutSmall(*client, 300'000) == 300'000);
  CHECK(LargeThatSucceed(*client, 10, 100'000) == 10);
}

TEST_CASE("kvd: of large values that come to old small ones each stays, not only the latest") {
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--memory=16m", "--hugepages=off", "--evict=lru"});
  REQUIRE(kvd.WaitReady());
  const auto client = Client::Connect("shm:" + dir.Join("s")).value();
  REQUIRE(PutSmall(*client, 300'000) == 300'000);
  CHECK(LargeThatSucceed(*client, 3, 3 << 20) == 3);
  for (const char* key : {"large0", "large1", "large2"}) KVD_REQUIRE_OK(client->Get(key));
}

}  // namespace
}  // namespace kvd::test
