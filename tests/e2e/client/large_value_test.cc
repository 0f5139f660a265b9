// Values up to the longest that kvd promises, byte for byte; how long is KVD_LARGE_VALUE_BYTES.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "common/base/hash.h"
#include "tests/e2e/client/kvd_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kBytesByDefault = size_t{64} << 20;

size_t Limit() {
  const char* const bytes = getenv("KVD_LARGE_VALUE_BYTES");
  return bytes != nullptr ? std::strtoull(bytes, nullptr, 10) : kBytesByDefault;
}

// A value of `n` bytes is what begins at the buffer's beginning: word i names itself and the seed.
void Fill(const Buffer& buffer, size_t n, uint64_t seed) {
  for (size_t at = 0; at < n; at += 8) {
    const uint64_t word = Mix64(seed) + at;
    std::memcpy(buffer.data() + at, &word, std::min<size_t>(8, n - at));
  }
}

bool Holds(const char* bytes, size_t n, uint64_t seed) {
  for (size_t at = 0; at < n; at += 8) {
    const uint64_t word = Mix64(seed) + at;
    if (std::memcmp(bytes + at, &word, std::min<size_t>(8, n - at)) != 0) return false;
  }
  return true;
}

struct Fixture {
  Fixture()
      : limit(Limit()),
        kvd({"--memory=" + std::to_string(4 * limit + (limit >> 3) + (64 << 20)),
             "--max_value=" + std::to_string(limit)}),
        client(kvd.Connect(Options())) {}

  // The deadline that clients have by default must do, but where every instruction is emulated.
  ClientOptions Options() const {
    ClientOptions options;
    if (!kvd.can_break()) options.deadline = seconds(300);
    return options;
  }

  const size_t limit;
  KvdUnderTest kvd;
  const std::unique_ptr<Client> client;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "Large values: the longest, one less and one more, by every path") {
  const Buffer buffer = client->AllocateBuffer(limit + 1).value();
  for (const size_t bytes : {limit - 1, limit}) {
    CAPTURE(bytes);
    const uint64_t seed = bytes;
    Fill(buffer, bytes, seed);
    KVD_REQUIRE_OK(client->PutFrom("k", buffer, bytes));
    std::memset(buffer.data(), 0, bytes);
    REQUIRE(client->GetInto("k", buffer).value() == bytes);
    REQUIRE(Holds(buffer.data(), bytes, seed));

    std::string value;
    KVD_REQUIRE_OK(client->Get("k", value));
    REQUIRE(value.size() == bytes);
    REQUIRE(Holds(value.data(), bytes, seed));
    value.back() ^= 1;
    KVD_REQUIRE_OK(client->Put("k", value));  // copied to where kvd can fetch it

    client->StartGetInto("k", buffer, Async{7, {}});
    std::vector<Completion> completions(1);
    REQUIRE(client->Wait(completions, seconds(600)) == 1);
    KVD_REQUIRE_OK(completions[0].status);
    REQUIRE(completions[0].length == bytes);
    REQUIRE(std::memcmp(buffer.data(), value.data(), bytes) == 0);
    KVD_REQUIRE_OK(client->Delete("k"));
  }
  KVD_REQUIRE_CODE(client->PutFrom("k", buffer, limit + 1), kOutOfRange);
  KVD_REQUIRE_CODE(client->Get("k"), kNotFound);
  KVD_REQUIRE_OK(client->PutFrom("k", buffer, limit));
  KVD_REQUIRE_CODE(client->Append("k", "x"), kOutOfRange);
  // An emulated device on a busy machine may give a session up.
  if (kvd.can_break()) CHECK(client->counters().reconnects == 0);
}

TEST_CASE_METHOD(Fixture, "Large values: one that is given up at its deadline stops nobody") {
  const Buffer buffer = client->AllocateBuffer(limit).value();
  Fill(buffer, limit, 1);
  KVD_REQUIRE_OK(client->PutFrom("long", buffer, limit));
  KVD_REQUIRE_OK(client->Put("short", "s"));
  const OperationOptions soon{milliseconds(2)};
  const absl::Status given_up = client->GetInto("long", buffer, soon).status();
  CHECK((given_up.ok() || absl::IsDeadlineExceeded(given_up)));  // loads take no deadline
  CHECK(client->Get("short").value() == "s");
  client->StartGetInto("long", buffer, Async{1, {}}, soon);
  std::vector<Completion> completions(1);
  REQUIRE(client->Wait(completions, seconds(600)) == 1);
  CHECK(client->Get("short").value() == "s");
  REQUIRE(client->GetInto("long", buffer).value() == limit);
  CHECK(Holds(buffer.data(), limit, 1));
  // An emulated device on a busy machine may give a session up.
  if (kvd.can_break()) CHECK(client->counters().reconnects == 0);
}

}  // namespace kvd::test
