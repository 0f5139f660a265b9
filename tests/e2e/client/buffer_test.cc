// Values read into and written from registered buffers.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/e2e/client/kvd_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  Fixture() : kvd({"--memory=256m", "--max_value=64m"}) {
    ClientOptions options;
    options.deadline = seconds(60);
    client = kvd.Connect(options);
  }

  std::string Bytes(size_t length) {
    std::string bytes(length, '\0');
    for (size_t at = 0; at < length; at += 8) {
      const uint64_t word = random.Next();
      std::memcpy(bytes.data() + at, &word, std::min<size_t>(8, length - at));
    }
    return bytes;
  }

  Random random{Seed()};
  KvdUnderTest kvd;
  std::unique_ptr<Client> client;
};

std::string_view In(const Buffer& buffer, size_t length) { return {buffer.data(), length}; }

}  // namespace

// A session has 64 registrations: a buffer that took one at each change of clients would soon have
// them all.
TEST_CASE_METHOD(Fixture, "Buffer: of two clients that use it in turn, each registers it once") {
  const auto other = kvd.Connect();
  const Buffer buffer = client->AllocateBuffer(1 << 20).value();
  for (int i = 0; i < 100; ++i) {
    Client& writer = i % 2 == 0 ? *client : *other;
    Client& reader = i % 2 == 0 ? *other : *client;
    const std::string value = Bytes(10'000);
    std::memcpy(buffer.data(), value.data(), value.size());
    KVD_REQUIRE_OK(writer.PutFrom("k", buffer, value.size()));
    std::memset(buffer.data(), 0, value.size());
    CHECK(reader.GetInto("k", buffer).value() == value.size());
    CHECK(In(buffer, value.size()) == value);
  }
  KVD_REQUIRE_OK(client->Put("large", Bytes(1 << 20)));
  KVD_REQUIRE_OK(other->Put("large", Bytes(1 << 20)));
}

TEST_CASE_METHOD(Fixture, "Buffer: a value of any length comes into it and goes out of it") {
  const Buffer buffer = client->AllocateBuffer(8 << 20).value();
  CHECK(buffer.size() == 8 << 20);
  CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 4096 == 0);
  for (const size_t length :
       {0u, 1u, 63u, 64u, 1000u, 2040u, 4096u, 100'001u, 4u << 20, 8u << 20}) {
    CAPTURE(length);
    const std::string value = Bytes(length);
    const std::string key(1 + length % 300, 'k');
    std::memcpy(buffer.data(), value.data(), length);
    WriteOptions options;
    if (length % 2 == 0) options.user_flags = 7;
    KVD_REQUIRE_OK(client->PutFrom(key, buffer, length, options));
    CHECK(client->Get(key).value() == value);
    for (int i = 0; i < 2; ++i) {
      std::memset(buffer.data(), 0, length);
      CHECK(client->GetInto(key, buffer).value() == length);
      CHECK((In(buffer, length) == value));
    }
    CHECK_FALSE(buffer.busy());
  }
}

TEST_CASE_METHOD(Fixture, "Buffer: a session has 64, and a Put of a long value takes one of them") {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 64; ++i) {
    buffers.push_back(client->AllocateBuffer(100'000).value());
    KVD_REQUIRE_OK(client->PutFrom("k", buffers.back(), buffers.back().size()));
  }
  const uint64_t requests = client->counters().requests;
  KVD_REQUIRE_CODE(client->Put("long", std::string(1 << 20, 'x')), kResourceExhausted);
  CHECK(client->counters().requests == requests);
  KVD_REQUIRE_OK(client->Put("short", "v"));
  buffers.pop_back();
  KVD_REQUIRE_OK(client->Put("long", std::string(1 << 20, 'x')));
  KVD_REQUIRE_CODE(client->PutFrom("k", client->AllocateBuffer(100'000).value(), 100'000),
                   kResourceExhausted);
}

TEST_CASE_METHOD(Fixture, "Buffer: what does not fit is refused, and no buffer is none") {
  const Buffer buffer = client->AllocateBuffer(1000).value();
  KVD_REQUIRE_OK(client->Put("k", std::string(1001, 'x')));
  KVD_REQUIRE_CODE(client->GetInto("k", buffer), kOutOfRange);
  KVD_REQUIRE_OK(client->Put("large", std::string(100'000, 'x')));
  KVD_REQUIRE_CODE(client->GetInto("large", buffer), kOutOfRange);
  KVD_REQUIRE_CODE(client->PutFrom("k", buffer, 1001), kInvalidArgument);
  KVD_REQUIRE_CODE(client->GetInto("k", Buffer()), kInvalidArgument);
  KVD_REQUIRE_CODE(client->PutFrom("k", Buffer(), 0), kInvalidArgument);
  KVD_REQUIRE_CODE(client->AllocateBuffer(0), kInvalidArgument);
  KVD_REQUIRE_CODE(client->AllocateBuffer(~size_t{0}), kInvalidArgument);
  KVD_REQUIRE_CODE(client->GetInto("absent", buffer), kNotFound);
  CHECK_FALSE(buffer.busy());
}

TEST_CASE_METHOD(Fixture, "Buffer: it outlives sessions, and many are under way at once") {
  std::vector<Buffer> buffers;
  std::vector<std::string> values;
  for (size_t i = 0; i < 16; ++i) {
    buffers.push_back(client->AllocateBuffer(1 << 20).value());
    values.push_back(Bytes(1 << 20));
    std::memcpy(buffers[i].data(), values[i].data(), values[i].size());
  }
  std::vector<Completion> some(16);
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < 16; ++i) {
      client->StartPutFrom("key" + std::to_string(i), buffers[i], values[i].size(), Async{i, {}});
    }
    if (round % 2 == 1) kvd.BreakSessions();
    while (client->outstanding() != 0) {
      const size_t count = client->Wait(some, seconds(60));
      for (size_t i = 0; i < count; ++i) REQUIRE(some[i].status == absl::OkStatus());
    }
    for (size_t i = 0; i < 16; ++i) {
      std::memset(buffers[i].data(), 0, 64);
      client->StartGetInto("key" + std::to_string(i), buffers[i], Async{i, {}});
    }
    while (client->outstanding() != 0) {
      const size_t count = client->Wait(some, seconds(60));
      for (size_t i = 0; i < count; ++i) {
        REQUIRE(some[i].status == absl::OkStatus());
        REQUIRE((In(buffers[some[i].tag], some[i].length) == values[some[i].tag]));
      }
    }
    for (const Buffer& buffer : buffers) CHECK_FALSE(buffer.busy());
  }
}

TEST_CASE_METHOD(
    Fixture, "Buffer: it is busy until the server is done with it, and may be given up before") {
  Buffer buffer = client->AllocateBuffer(1 << 20).value();
  std::memset(buffer.data(), 'x', buffer.size());
  kvd.process().Stop();
  WriteOptions soon;
  soon.deadline = milliseconds(20);
  KVD_REQUIRE_CODE(client->PutFrom("k", buffer, buffer.size(), soon), kDeadlineExceeded);
  CHECK(buffer.busy());
  Buffer given_up = client->AllocateBuffer(1 << 20).value();
  std::memset(given_up.data(), 'y', given_up.size());
  client->StartPutFrom("given up", given_up, given_up.size(), Async{1, {}});
  client->Poll({});
  given_up = Buffer();
  kvd.process().Continue();
  Completion completion;
  REQUIRE(client->Wait(std::span(&completion, 1), seconds(60)) == 1);
  CHECK(completion.status == absl::OkStatus());
  while (buffer.busy()) client->Poll({});
  CHECK(client->Get("k").value() == std::string(1 << 20, 'x'));
  CHECK(client->Get("given up").value() == std::string(1 << 20, 'y'));
}

TEST_CASE_METHOD(Fixture,
                 "Buffer: a child of fork() that gives one up takes nothing from its parent") {
  Buffer buffer = client->AllocateBuffer(1 << 20).value();
  std::memset(buffer.data(), 'p', buffer.size());
  KVD_REQUIRE_OK(client->PutFrom("k", buffer, buffer.size()));
  const pid_t child = fork();
  if (child == 0) {
    buffer = Buffer();
    std::_Exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  KVD_REQUIRE_OK(client->PutFrom("k", buffer, buffer.size()));
  CHECK(client->GetInto("k", buffer).value() == buffer.size());
  CHECK(client->counters().reconnects == 0);
}

TEST_CASE_METHOD(Fixture, "Buffer: it may outlive its client") {
  Buffer buffer = client->AllocateBuffer(1 << 20).value();
  KVD_REQUIRE_OK(client->PutFrom("k", buffer, 1 << 20));
  client.reset();
  std::memset(buffer.data(), 'z', buffer.size());
  client = kvd.Connect();
  KVD_REQUIRE_OK(client->PutFrom("k", buffer, 1 << 20));
  CHECK(client->Get("k").value()[77] == 'z');
}

}  // namespace kvd::test
