// A ClientChannel without a server: reads a TestRegion, keeps what was sent, and answers as the
// test says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/layout/frames.h"
#include "common/transport/client_channel.h"
#include "tests/unit/client/internal/machine_driver.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {

class FakeChannel : public ClientChannel {
 public:
  // `mapped`: the region is this process's memory, as over shared memory; otherwise READs are
  // posted.
  FakeChannel(TestRegion& region, bool mapped) : region_(region) {
    welcome_.frame_bytes = kFrameBytesDefault;
    welcome_.credits = 4;
    if (mapped) window_ = region.bytes();
  }

  struct Sent {
    RequestHeader header;
    std::string key;
    std::string payload;
  };

  void set_credits(uint32_t credits) { welcome_.credits = credits; }

  absl::Status status() override { return status_; }

  absl::StatusOr<TransferBuffer> Allocate(size_t bytes) override {
    if (on_allocate) on_allocate();
    if (allocations_fail) return absl::ResourceExhaustedError("no memory");
    const uint32_t key = next_key_++;
    auto& memory = buffers_[key];
    memory = std::make_unique<ExactBuffer>(bytes);
    return TransferBuffer{memory->bytes(), key * uint64_t{1000}, key};
  }
  absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages) override {
    const uint32_t key = next_key_++;
    buffers_[key] = nullptr;
    return TransferBuffer{std::span(pages->base(), pages->length_bytes()), key * uint64_t{1000}, key};
  }
  std::function<void()> on_allocate;
  void Free(const TransferBuffer& buffer) override {
    frees_unknown += buffers_.erase(buffer.key) == 1 ? 0 : 1;
  }

  size_t reads_max() const override { return 1; }

  absl::Status PostReads(std::span<const ReadOp> ops) override {
    if (!status_.ok()) return status_;
    if (ops.size() != 1 || posted_.has_value())
      return absl::ResourceExhaustedError("one READ at a time");
    ++reads;
    if (before_read) before_read(reads, ops[0]);
    posted_ = ops[0];
    if (!hold_reads) CompleteRead(true);
    return absl::OkStatus();
  }

  void GiveUpRead(uint64_t id) override { given_up.push_back(id); }

  size_t PollReads(std::span<ReadCompletion> completions) override {
    if (!completed_.has_value()) return 0;
    completions[0] = *completed_;
    completed_.reset();
    posted_.reset();
    return 1;
  }

  absl::Status Send(const FrameParts& frame) override {
    if (!status_.ok()) return status_;
    if (frame.bytes() > welcome_.frame_bytes) return absl::InvalidArgumentError("too long a frame");
    if (credits_taken_ == welcome_.credits) return absl::ResourceExhaustedError("no credit");
    ++credits_taken_;
    Sent one;
    std::memcpy(&one.header, frame.header.data(), sizeof(one.header));
    one.key = frame.key;
    one.payload = frame.payload;
    sent.push_back(one);
    if (on_send) on_send(sent.back());
    return absl::OkStatus();
  }

  std::span<const std::byte> PollReply() override {
    if (replies_.empty()) return {};
    current_ = replies_.front();
    replies_.pop_front();
    if (credits_taken_ > 0) --credits_taken_;
    return std::as_bytes(std::span(current_));
  }

  // Never blocks: does what the test has planned for this moment, or else the deadline passes.
  absl::Status Wait(int64_t) override {
    ++waits;
    if (!status_.ok()) return status_;
    if (on_wait.empty()) return absl::DeadlineExceededError("deadline");
    const auto next = std::move(on_wait.front());
    on_wait.pop_front();
    next();
    return status_.ok() || !replies_.empty() || completed_.has_value() ? absl::OkStatus() : status_;
  }

  void Answer(uint64_t request_id, std::string payload = {},
              ReplyStatus status = ReplyStatus::kOk) {
    ReplyHeader header{};
    header.request_id = request_id;
    for (const Sent& one : sent) {
      if (one.header.request_id == request_id) header.opcode = one.header.opcode;
    }
    header.status = static_cast<uint16_t>(status);
    header.value_len = payload.size();
    AnswerBytes(std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + payload);
  }
  void AnswerBytes(std::string frame) { replies_.push_back(std::move(frame)); }

  bool PrepareToSleep() override { return replies_.empty() && !completed_.has_value() && status_.ok(); }
  void FinishSleep() override {}
  std::vector<int> event_fds() const override { return {}; }

  void End(absl::Status why) { status_ = std::move(why); }

  // The READ that is posted lands and completes.
  void CompleteRead(bool ok) {
    std::memcpy(posted_->into, region_.At(posted_->offset), posted_->length);
    completed_ = ReadCompletion{posted_->id, ok};
  }
  bool read_posted() const { return posted_.has_value(); }

  size_t buffers() const { return buffers_.size(); }
  std::span<std::byte> buffer(uint32_t key) { return buffers_.at(key)->bytes(); }

  std::function<void(int number, const ReadOp& op)> before_read;
  std::function<void(const Sent& sent)> on_send;
  std::deque<std::function<void()>> on_wait;
  std::vector<Sent> sent;
  std::vector<uint64_t> given_up;  // READs
  bool hold_reads = false;  // READs complete only by CompleteRead
  bool allocations_fail = false;
  int reads = 0;
  int waits = 0;
  int frees_unknown = 0;

 private:
  TestRegion& region_;
  absl::Status status_;
  uint32_t next_key_ = 1;
  uint32_t credits_taken_ = 0;
  std::map<uint32_t, std::unique_ptr<ExactBuffer>> buffers_;
  std::optional<ReadOp> posted_;
  std::optional<ReadCompletion> completed_;
  std::deque<std::string> replies_;
  std::string current_;
};

}  // namespace kvd::test
