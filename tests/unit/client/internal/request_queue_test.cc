// Requests over a channel that answers late, wrongly or not at all: nothing is lost and nothing is
// used twice.
#include "client/internal/request_queue.h"

#include <sched.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>

#include "common/base/clock.h"
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
  Fixture() { queue.Attach(channel, nullptr, false); }

  // As the blocking operations do it.
  absl::StatusOr<ReplyView> Call(RequestHeader header, std::string_view key,
                                 std::string_view payload) {
    requests.push_back(std::make_unique<Request>());
    Request& request = *requests.back();
    request.header = header;
    request.key = key;
    request.payload = payloads.emplace_back(payload);
    queue.Submit(request);
    for (;;) {
      const absl::Status pumped = queue.Pump();
      if (request.done) break;
      absl::Status status = pumped.ok() ? channel.Wait(0) : pumped;
      if (status.ok()) continue;
      static_cast<void>(queue.Pump());
      if (request.done) break;
      progress = queue.Withdraw(request);
      return status;
    }
    if (!request.status.ok()) return request.status;
    return ReplyView{request.reply, request.reply_payload};
  }
  absl::StatusOr<ReplyView> Put(std::string_view value) {
    return Call(Header(Opcode::kPut), "key", value);
  }
  void AnswerAll() {
    channel.on_send = [this](const FakeChannel::Sent& sent) {
      channel.Answer(sent.header.request_id, "answer");
    };
  }

  TestRegion region{7};
  FakeChannel channel{region, true};
  RequestQueue queue;
  RequestQueue::Progress progress = RequestQueue::Progress::kUnsent;
  std::deque<std::unique_ptr<Request>> requests;
  std::deque<std::string> payloads;
};

TEST_CASE_METHOD(Fixture, "RequestQueue: a call sends one frame and returns its reply") {
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
  CHECK(queue.requests() == 1);
  CHECK(channel.waits == 0);
}

TEST_CASE_METHOD(Fixture, "RequestQueue: what it sends keeps the format") {
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
  KVD_REQUIRE_OK(Call(Header(Opcode::kPing), {}, {}));
  CHECK(channel.sent.size() == 4);
}

TEST_CASE_METHOD(Fixture, "RequestQueue: request ids differ") {
  AnswerAll();
  for (int i = 0; i < 10; ++i) KVD_REQUIRE_OK(Put("v"));
  for (size_t i = 1; i < channel.sent.size(); ++i) {
    CHECK(channel.sent[i].header.request_id > channel.sent[i - 1].header.request_id);
  }
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: a payload that does not fit the frame is staged for a pull") {
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

TEST_CASE_METHOD(Fixture, "RequestQueue: the largest payload that fits is not staged") {
  AnswerAll();
  KVD_REQUIRE_OK(Put(std::string(channel.welcome().frame_bytes - sizeof(RequestHeader) - 3, 'x')));
  CHECK(channel.buffers() == 0);
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: what is too late is not sent, also if its copy took that long") {
  AnswerAll();
  const auto now_ns = [] { return RealClock::Get().NowMonotonicNs(); };
  const std::string large(50000, 'x');
  Request late;
  late.header = Header(Opcode::kPut);
  late.key = "key";
  late.payload = "value";
  late.deadline_ns = now_ns();
  Request copied;
  copied.header = Header(Opcode::kPut);
  copied.key = "key";
  copied.payload = large;
  copied.deadline_ns = now_ns() + 20'000'000;
  channel.on_allocate = [&] {
    while (now_ns() < copied.deadline_ns) sched_yield();
  };
  Request in_time;
  in_time.header = Header(Opcode::kPut);
  in_time.key = "key";
  in_time.deadline_ns = INT64_MAX;
  for (Request* request : {&late, &copied, &in_time}) queue.Submit(*request);
  KVD_REQUIRE_OK(queue.Pump());
  for (Request* request : {&late, &copied, &in_time}) REQUIRE(request->done);
  KVD_REQUIRE_CODE(late.status, kDeadlineExceeded);
  KVD_REQUIRE_CODE(copied.status, kDeadlineExceeded);
  CHECK_THAT(std::string(copied.status.message()), Contains("not sent"));
  KVD_REQUIRE_OK(in_time.status);
  REQUIRE(channel.sent.size() == 1);
  CHECK(channel.sent[0].payload.empty());
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: a repeat is sent whatever its deadline: it has been sent before") {
  Request request;
  request.header = Header(Opcode::kPut);
  request.key = "key";
  request.deadline_ns = INT64_MAX;
  queue.Submit(request);
  KVD_REQUIRE_OK(queue.Pump());
  queue.Detach();
  request.deadline_ns = 1;
  FakeChannel next(region, true);
  queue.Attach(next, nullptr, true);
  KVD_REQUIRE_OK(queue.Pump());
  CHECK(next.sent.size() == 1);
  CHECK_FALSE(request.done);
  CHECK(queue.Withdraw(request) == RequestQueue::Progress::kSent);
  queue.Detach();
}

TEST_CASE_METHOD(Fixture, "RequestQueue: a staging buffer outlives the deadline of its call") {
  const std::string value(50000, 'x');
  const auto late = Put(value);
  KVD_REQUIRE_CODE(late, kDeadlineExceeded);
  CHECK(progress == RequestQueue::Progress::kSent);
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

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: a late reply is never taken for the answer of a later call") {
  KVD_REQUIRE_CODE(Put("slow"), kDeadlineExceeded);
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    channel.Answer(channel.sent[0].header.request_id, "late");
    channel.Answer(sent.header.request_id, "mine");
  };
  const auto reply = Put("next");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "mine");
}

TEST_CASE_METHOD(Fixture, "RequestQueue: the answer may come during the wait") {
  channel.on_wait.emplace_back([] {});  // a doorbell for nothing
  channel.on_wait.emplace_back(
      [this] { channel.Answer(channel.sent[0].header.request_id, "answer"); });
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "answer");
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: without a credit it waits, and says so when the deadline passes") {
  for (uint32_t i = 0; i < channel.welcome().credits; ++i)
    KVD_REQUIRE_CODE(Put("slow"), kDeadlineExceeded);
  const size_t sent = channel.sent.size();
  const auto refused = Put(std::string(50000, 'x'));
  KVD_REQUIRE_CODE(refused, kDeadlineExceeded);
  CHECK(progress == RequestQueue::Progress::kUnsent);
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
                 "RequestQueue: a notification needs no answer, and is dropped without a credit") {
  const uint32_t credits = channel.welcome().credits;
  for (uint32_t i = 0; i < credits + 2; ++i) {
    CHECK(queue.credits_free() == credits - std::min(i, credits));
    CHECK(queue.Notify(Header(Opcode::kRelease), {}) == (i < credits));
  }
  CHECK(channel.sent.size() == channel.welcome().credits);
  CHECK(queue.requests() == channel.welcome().credits);
  for (const FakeChannel::Sent& sent : channel.sent)
    channel.Answer(sent.header.request_id, "dropped");
  AnswerAll();
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "answer");
}

// Whoever waits for a reply when all have been taken waits in vain.
TEST_CASE_METHOD(
    Fixture, "RequestQueue: what waits for credits is sent when all others are answered at once") {
  AnswerAll();
  std::deque<Request> many(3 * channel.welcome().credits);
  for (Request& request : many) {
    request.header = Header(Opcode::kPut);
    request.key = "key";
    queue.Submit(request);
  }
  KVD_REQUIRE_OK(queue.Pump());
  for (const Request& request : many) CHECK(request.done);
}

TEST_CASE_METHOD(Fixture, "RequestQueue: a reply that breaks the format is DataLoss") {
  const std::string frame =
      GENERATE(std::string(1, 'x'), std::string(55, 'x'), std::string(56, '\0'));
  channel.on_send = [&](const FakeChannel::Sent&) { channel.AnswerBytes(frame); };
  const auto reply = Put("value");
  KVD_REQUIRE_CODE(reply, kDataLoss);
  CHECK_THAT(MessageOf(reply), Contains("broke the format"));
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: a reply to another operation under the call's id is DataLoss") {
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    ReplyHeader header{};
    header.request_id = sent.header.request_id;
    header.opcode = static_cast<uint8_t>(Opcode::kGet);
    channel.AnswerBytes(std::string(reinterpret_cast<const char*>(&header), sizeof(header)));
  };
  KVD_REQUIRE_CODE(Put("value"), kDataLoss);
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: what a session left unanswered is repeated in the next, first and "
                 "under its id") {
  Request write;
  write.header = Header(Opcode::kPut);
  write.key = "key";
  write.payload = "value";
  Request large = write;
  const std::string large_value(50000, 'x');
  large.payload = large_value;
  Request get = write;
  get.header = Header(Opcode::kGet);
  get.payload = {};
  for (Request* request : {&write, &large, &get}) queue.Submit(*request);
  KVD_REQUIRE_OK(queue.Pump());
  REQUIRE(channel.sent.size() == 3);
  Request later = write;
  queue.Submit(later);
  channel.End(absl::UnavailableError("gone"));
  queue.Detach();
  CHECK(channel.buffers() == 0);

  FakeChannel next(region, true);
  next.on_send = [&next](const FakeChannel::Sent& sent) {
    next.Answer(sent.header.request_id, "again");
  };
  queue.Attach(next, nullptr, true);
  KVD_REQUIRE_OK(queue.Pump());
  REQUIRE(next.sent.size() == 4);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(next.sent[i].header.request_id == channel.sent[i].header.request_id);
    CHECK((next.sent[i].header.flags & kRequestRepeat) != 0);
  }
  CHECK((next.sent[1].header.flags & kRequestPull) != 0);  // staged anew
  for (size_t i = 2; i < 4; ++i) {
    CHECK(next.sent[i].header.request_id > channel.sent[2].header.request_id);
    CHECK((next.sent[i].header.flags & kRequestRepeat) == 0);
  }
  for (const Request* request : {&write, &large, &get, &later}) {
    CHECK(request->done);
    CHECK(request->status == absl::OkStatus());
    CHECK(request->reply_payload == "again");
  }
  CHECK(queue.repeats() == 2);
  CHECK(queue.idle());
  queue.Detach();
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: where the replies were not kept, a write's outcome is unknown, the "
                 "rest is asked anew") {
  Request write;
  write.header = Header(Opcode::kPut);
  write.key = "key";
  Request get = write;
  get.header = Header(Opcode::kGet);
  Request unsent = write;
  queue.Submit(write);
  queue.Submit(get);
  KVD_REQUIRE_OK(queue.Pump());
  queue.Submit(unsent);
  queue.Detach();
  FakeChannel next(region, true);
  next.on_send = [&next](const FakeChannel::Sent& sent) { next.Answer(sent.header.request_id); };
  queue.Attach(next, nullptr, false);
  KVD_REQUIRE_OK(queue.Pump());
  CHECK(write.status.code() == absl::StatusCode::kUnknown);
  CHECK(get.status == absl::OkStatus());
  CHECK(unsent.status == absl::OkStatus());
  CHECK(next.sent.size() == 2);
  queue.Detach();
}

TEST_CASE_METHOD(
    Fixture,
    "RequestQueue: a session that has fewer credits takes the repeats one after the other") {
  std::deque<Request> writes(4);
  for (Request& write : writes) {
    write.header = Header(Opcode::kPut);
    write.key = "key";
    queue.Submit(write);
  }
  KVD_REQUIRE_OK(queue.Pump());
  queue.Detach();
  FakeChannel next(region, true);
  next.set_credits(1);
  queue.Attach(next, nullptr, true);
  for (size_t i = 0; i < writes.size(); ++i) {
    KVD_REQUIRE_OK(queue.Pump());
    REQUIRE(next.sent.size() == i + 1);
    CHECK(next.sent[i].header.request_id == channel.sent[i].header.request_id);
    next.Answer(next.sent[i].header.request_id);
  }
  KVD_REQUIRE_OK(queue.Pump());
  for (const Request& write : writes) CHECK(write.status == absl::OkStatus());
  queue.Detach();
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: when no session will come, what was sent is unknown and the rest "
                 "fails with the cause") {
  Request write;
  write.header = Header(Opcode::kPut);
  write.key = "key";
  Request get = write;
  get.header = Header(Opcode::kGet);
  queue.Submit(write);
  queue.Submit(get);
  KVD_REQUIRE_OK(queue.Pump());
  queue.Detach();
  Request late = write;
  queue.Submit(late);
  queue.FailAll(absl::UnavailableError("nobody listens"));
  CHECK(write.status.code() == absl::StatusCode::kUnknown);
  CHECK(get.status.code() == absl::StatusCode::kUnavailable);
  CHECK(late.status.code() == absl::StatusCode::kUnavailable);
  CHECK(queue.idle());
}

TEST_CASE_METHOD(Fixture, "RequestQueue: one that is withdrawn between sessions is not repeated") {
  Request write;
  write.header = Header(Opcode::kPut);
  write.key = "key";
  queue.Submit(write);
  KVD_REQUIRE_OK(queue.Pump());
  queue.Detach();
  CHECK(queue.Withdraw(write) == RequestQueue::Progress::kUnanswered);
  FakeChannel next(region, true);
  queue.Attach(next, nullptr, true);
  KVD_REQUIRE_OK(queue.Pump());
  CHECK(next.sent.empty());
  queue.Detach();
}

TEST_CASE_METHOD(Fixture, "RequestQueue: requests with an owner are handed back as they finish") {
  Request one;
  one.header = Header(Opcode::kPing);
  one.owner = &one;
  Request two = one;
  two.owner = &two;
  AnswerAll();
  queue.Submit(one);
  queue.Submit(two);
  CHECK(queue.TakeFinished() == nullptr);
  KVD_REQUIRE_OK(queue.Pump());
  CHECK(queue.TakeFinished() == &one);
  CHECK(queue.TakeFinished() == &two);
  CHECK(queue.TakeFinished() == nullptr);
}

TEST_CASE_METHOD(Fixture,
                 "RequestQueue: an answer that came together with the session's end counts") {
  channel.on_send = [this](const FakeChannel::Sent& sent) {
    channel.Answer(sent.header.request_id, "last words");
    channel.End(absl::UnavailableError("gone"));
  };
  const auto reply = Put("value");
  KVD_REQUIRE_OK(reply);
  CHECK(reply->payload == "last words");
}

TEST_CASE_METHOD(Fixture, "RequestQueue: after the session's end nothing is sent") {
  channel.End(absl::UnavailableError("gone"));
  KVD_REQUIRE_CODE(Put("value"), kUnavailable);
  KVD_REQUIRE_CODE(Put(std::string(50000, 'x')), kUnavailable);
  CHECK(channel.sent.empty());
}

TEST_CASE_METHOD(Fixture, "RequestQueue: without memory to stage a value nothing is sent") {
  channel.allocations_fail = true;
  KVD_REQUIRE_CODE(Put(std::string(50000, 'x')), kResourceExhausted);
  CHECK(channel.sent.empty());
}

TEST_CASE("RequestQueue: it gives all buffers back when it goes") {
  TestRegion region(7);
  FakeChannel channel(region, true);
  const std::string value(50000, 'x');
  std::deque<Request> requests(3);
  {
    RequestQueue queue;
    queue.Attach(channel, nullptr, false);
    for (Request& request : requests) {
      request.header = Header(Opcode::kPut);
      request.key = "key";
      request.payload = value;
      queue.Submit(request);
    }
    KVD_REQUIRE_OK(queue.Pump());
    CHECK(channel.buffers() == 3);
    queue.Withdraw(requests[0]);
    channel.Answer(channel.sent[0].header.request_id);
    KVD_REQUIRE_OK(queue.Pump());
    CHECK(channel.buffers() == 3);  // one of them kept for the next
  }
  CHECK(channel.buffers() == 0);
  CHECK(channel.frees_unknown == 0);
}

}  // namespace
}  // namespace kvd::test
