// Requests over a channel that answers late, wrongly or not at all: nothing is lost and nothing is
// used twice.
#include "client/internal/requester.h"

#include <string>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/internal/fake_channel.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

RequestHeader Header(Opcode opcode) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  return header;
}

struct Fixture {
  TestRegion region{7};
  FakeChannel channel{region, true};
  Requester requester{channel};

  absl::StatusOr<ReplyView> Put(std::string_view value) {
    return requester.Call(Header(Opcode::kPut), "key", value, 0);
  }
  void AnswerAll() {
    channel.on_send = [this](const FakeChannel::Sent& sent) {
      channel.Answer(sent.header.request_id, "answer");
    };
  }
};

TEST_CASE_METHOD(Fixture, "Requester: a call sends one frame and returns its reply") {
  AnswerAll();
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "answer");
  REQUIRE(channel.sent.size() == 1);
  CHECK(channel.sent[0].key == "key");
  CHECK(channel.sent[0].payload == "value");
  CHECK(channel.sent[0].header.key_len == 3);
  CHECK(channel.sent[0].header.value_len == 5);
  CHECK(channel.sent[0].header.flags == 0);
  CHECK(channel.sent[0].header.request_id != 0);
  CHECK(requester.requests() == 1);
  CHECK(channel.waits == 0);
}

TEST_CASE_METHOD(Fixture, "Requester: what it sends keeps the format") {
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    std::string frame(reinterpret_cast<const char*>(&sent.header), sizeof(sent.header));
    frame += sent.key + sent.payload;
    RequestView request;
    CHECK(DecodeRequest(std::as_bytes(std::span(frame)), request) == nullptr);
    channel.Answer(sent.header.request_id);
  };
  KVD_REQUIRE_OK(Put("value"));
  KVD_REQUIRE_OK(Put(""));
  KVD_REQUIRE_OK(Put(std::string(100000, 'x')));
  KVD_REQUIRE_OK(requester.Call(Header(Opcode::kPing), {}, {}, 0));
  CHECK(channel.sent.size() == 4);
}

TEST_CASE_METHOD(Fixture, "Requester: request ids differ") {
  AnswerAll();
  for (int i = 0; i < 10; ++i) KVD_REQUIRE_OK(Put("v"));
  for (size_t i = 1; i < channel.sent.size(); ++i) {
    CHECK(channel.sent[i].header.request_id > channel.sent[i - 1].header.request_id);
  }
}

TEST_CASE_METHOD(Fixture, "Requester: a payload that does not fit the frame is staged for a pull") {
  const std::string value(channel.welcome().frame_bytes, 'x');
  channel.on_send = [&](const FakeChannel::Sent& sent) {
    CHECK(sent.payload.empty());
    CHECK(sent.header.flags == kRequestPull);
    CHECK(sent.header.value_len == value.size());
    CHECK(sent.header.pull_address == sent.header.pull_key * 1000);
    const auto staged = channel.buffer(sent.header.pull_key);
    REQUIRE(staged.size() >= value.size());
    CHECK(std::memcmp(staged.data(), value.data(), value.size()) == 0);
    channel.Answer(sent.header.request_id);
  };
  KVD_REQUIRE_OK(Put(value));
  CHECK(channel.buffers() == 1);  // kept for the next one
  KVD_REQUIRE_OK(Put(value));
  CHECK(channel.buffers() == 1);
}

TEST_CASE_METHOD(Fixture, "Requester: the largest payload that fits is not staged") {
  AnswerAll();
  KVD_REQUIRE_OK(Put(std::string(channel.welcome().frame_bytes - sizeof(RequestHeader) - 3, 'x')));
  CHECK(channel.buffers() == 0);
}

TEST_CASE_METHOD(Fixture, "Requester: a staging buffer outlives the deadline of its call") {
  const std::string value(50000, 'x');
  const auto late = Put(value);
  KVD_REQUIRE_CODE(late, kDeadlineExceeded);
  CHECK_THAT(MessageOf(late), Contains("sent, and not answered in time"));
  REQUIRE(channel.buffers() == 1);
  const uint32_t first_key = channel.sent[0].header.pull_key;

  // The next large value must not go into memory that the server may still pull from.
  AnswerAll();
  KVD_REQUIRE_OK(Put(std::string(50000, 'y')));
  CHECK(channel.sent[1].header.pull_key != first_key);
  CHECK(channel.buffer(first_key)[0] == std::byte{'x'});
  CHECK(channel.buffers() == 2);

  // The late reply gives it back.
  channel.Answer(channel.sent[0].header.request_id);
  KVD_REQUIRE_OK(Put("small"));
  CHECK(channel.buffers() == 1);
  CHECK(channel.frees_unknown == 0);
}

TEST_CASE_METHOD(Fixture, "Requester: a late reply is never taken for the answer of a later call") {
  KVD_REQUIRE_CODE(Put("slow"), kDeadlineExceeded);
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    channel.Answer(channel.sent[0].header.request_id, "late");
    channel.Answer(sent.header.request_id, "mine");
  };
  const auto reply = Put("next");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "mine");
}

TEST_CASE_METHOD(Fixture, "Requester: the answer may come during the wait") {
  channel.on_wait.emplace_back([] {});  // a doorbell for nothing
  channel.on_wait.emplace_back(
      [this] { channel.Answer(channel.sent[0].header.request_id, "answer"); });
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "answer");
}

TEST_CASE_METHOD(Fixture,
                 "Requester: without a credit it waits, and says so when the deadline passes") {
  for (uint32_t i = 0; i < channel.welcome().credits; ++i)
    KVD_REQUIRE_CODE(Put("slow"), kDeadlineExceeded);
  const size_t sent = channel.sent.size();
  const auto refused = Put(std::string(50000, 'x'));
  KVD_REQUIRE_CODE(refused, kDeadlineExceeded);
  CHECK_THAT(MessageOf(refused), Contains("not sent"));
  CHECK(channel.sent.size() == sent);

  // Nothing was sent, so its buffer is free for the next one.
  channel.on_wait.emplace_back([this] { channel.Answer(channel.sent[0].header.request_id); });
  AnswerAll();
  const auto reply = Put(std::string(50000, 'y'));
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "answer");
  CHECK(channel.buffers() == 1);
}

TEST_CASE_METHOD(Fixture,
                 "Requester: a notification needs no answer, and is dropped without a credit") {
  for (uint32_t i = 0; i < channel.welcome().credits + 2; ++i)
    requester.Notify(Header(Opcode::kRelease), {});
  CHECK(channel.sent.size() == channel.welcome().credits);
  CHECK(requester.requests() == channel.welcome().credits);
  for (const FakeChannel::Sent& sent : channel.sent)
    channel.Answer(sent.header.request_id, "dropped");
  AnswerAll();
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "answer");
}

TEST_CASE_METHOD(Fixture, "Requester: a reply that breaks the format is DataLoss") {
  const std::string frame =
      GENERATE(std::string(1, 'x'), std::string(47, 'x'), std::string(48, '\0'));
  channel.on_send = [&](const FakeChannel::Sent&) { channel.AnswerBytes(frame); };
  const auto reply = Put("value");
  KVD_REQUIRE_CODE(reply, kDataLoss);
  CHECK_THAT(MessageOf(reply), Contains("broke the format"));
}

TEST_CASE_METHOD(Fixture,
                 "Requester: a reply to another operation under the call's id is DataLoss") {
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    ReplyHeader header{};
    header.request_id = sent.header.request_id;
    header.opcode = static_cast<uint8_t>(Opcode::kGet);
    channel.AnswerBytes(std::string(reinterpret_cast<const char*>(&header), sizeof(header)));
  };
  KVD_REQUIRE_CODE(Put("value"), kDataLoss);
}

TEST_CASE_METHOD(Fixture,
                 "Requester: a session that ends under a sent request makes its outcome unknown") {
  SECTION("before the wait") {
    channel.on_send = [this](const FakeChannel::Sent&) {
      channel.End(absl::UnavailableError("gone"));
    };
  }
  SECTION("during the wait") {
    channel.on_wait.emplace_back([this] { channel.End(absl::UnavailableError("gone")); });
  }
  const auto reply = Put("value");
  KVD_REQUIRE_CODE(reply, kUnknown);
  CHECK_THAT(MessageOf(reply), Contains("gone"));
}

TEST_CASE_METHOD(Fixture, "Requester: an answer that came together with the session's end counts") {
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    channel.Answer(sent.header.request_id, "last words");
    channel.End(absl::UnavailableError("gone"));
  };
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "last words");
}

TEST_CASE_METHOD(Fixture, "Requester: after the session's end nothing is sent") {
  channel.End(absl::UnavailableError("gone"));
  KVD_REQUIRE_CODE(Put("value"), kUnavailable);
  KVD_REQUIRE_CODE(Put(std::string(50000, 'x')), kUnavailable);
  CHECK(channel.sent.empty());
}

TEST_CASE_METHOD(Fixture, "Requester: without memory to stage a value nothing is sent") {
  channel.allocations_fail = true;
  KVD_REQUIRE_CODE(Put(std::string(50000, 'x')), kResourceExhausted);
  CHECK(channel.sent.empty());
}

TEST_CASE("Requester: it gives all buffers back when it goes") {
  TestRegion region(7);
  FakeChannel channel(region, true);
  {
    Requester requester(channel);
    for (int i = 0; i < 3; ++i) {
      KVD_REQUIRE_CODE(requester.Call(Header(Opcode::kPut), "key", std::string(50000, 'x'), 0),
                       kDeadlineExceeded);
    }
    channel.Answer(channel.sent[0].header.request_id);
    KVD_REQUIRE_CODE(requester.Call(Header(Opcode::kPut), "key", "small", 0), kDeadlineExceeded);
    CHECK(channel.buffers() == 3);
  }
  CHECK(channel.buffers() == 0);
  CHECK(channel.frees_unknown == 0);
}

}  // namespace
}  // namespace kvd::test
