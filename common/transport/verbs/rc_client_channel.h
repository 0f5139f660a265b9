// A client's channel over one reliable connection. Its parts: opening it (_open), the data path
// (rc_client_channel.cc), and waiting (_wait).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/transport/client_channel.h"
#include "common/transport/verbs/async_events.h"
#include "common/transport/verbs/client_buffers.h"
#include "common/transport/verbs/client_path.h"
#include "common/transport/verbs/memory_region.h"
#include "common/transport/verbs/read_window.h"
#include "common/transport/verbs/send_queue.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

class RcClientChannel final : public ClientChannel {
 public:
  explicit RcClientChannel(ClientPath path);

  // The device touches no buffer any more before the first of them goes.
  ~RcClientChannel() override { path_.qp->Destroy(); }

  // Until it has returned Ok, nothing else is for use. Errors: as VerbsClientChannel::Connect.
  absl::Status Open(const Hello& hello, std::shared_ptr<const AccessKey> key, int64_t deadline_ns);

  absl::Status status() override;

  absl::StatusOr<TransferBuffer> Allocate(size_t bytes) override {
    KVD_RETURN_IF_ERROR(broken_);
    return buffers_.Allocate(bytes);
  }
  absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages) override {
    KVD_RETURN_IF_ERROR(broken_);
    return buffers_.Register(std::move(pages));
  }
  // Waits for READs into it, which takes no longer than a device takes to give its peer up, and
  // ends the session where that is no end.
  void Free(const TransferBuffer& buffer) override;

  size_t reads_max() const override { return kReadsMax; }
  absl::Status PostReads(std::span<const ReadOp> ops) override;
  void GiveUpRead(uint64_t id) override { reads_.GiveUp(id); }
  size_t PollReads(std::span<ReadCompletion> completions) override;

  absl::Status Send(const FrameParts& frame) override;
  std::span<const std::byte> PollReply() override;
  absl::Status Wait(int64_t deadline_ns) override;

  bool PrepareToSleep() override;
  void FinishSleep() override;
  std::vector<int> event_fds() const override { return {path_.cq->fd(), EndsFd(), async_.fd()}; }

 private:
  static constexpr size_t kReadsMax = 64;

  // What a send request was, in its cookie; a send of a message has its slot there.
  static constexpr uint64_t kReadCookie = ~uint64_t{0};
  static constexpr uint64_t kKeepAliveCookie = kReadCookie - 1;
  static constexpr uint64_t kProbeCookie = kReadCookie - 2;

  struct Reply {
    uint32_t slot;
    std::span<const std::byte> frame;
  };

  std::byte* ReceiveAt(uint32_t slot) { return frames_.base() + size_t{slot} * message_bytes_; }
  std::byte* SendAt(uint32_t slot) { return ReceiveAt(ClientReceives(path_.credits) + slot); }
  std::byte* ScratchAt() { return SendAt(ClientSendsMax(path_.credits)); }

  absl::Status SayHello(const Hello& hello, std::shared_ptr<const AccessKey> key,
                        int64_t deadline_ns);
  absl::Status Tell(MessageKind kind, std::span<const std::byte> body);
  absl::Status AwaitAnswer(int64_t deadline_ns);
  absl::Status MakeFrames();
  absl::Status Probe(int64_t deadline_ns);
  absl::Status ProbeRead(uint64_t bytes, int64_t deadline_ns);
  absl::Status CheckRegion();

  static int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

  absl::Status PostReceive(uint32_t slot);
  // Posts the receive of the reply that the caller has looked at.
  void TakeBack();
  size_t Drain();
  void Handle(const ibv_wc& completion);
  void HandleMessage(uint32_t slot, uint32_t bytes);
  void SendDone(uint64_t cookie, bool ok);
  absl::Status PostSends();
  void PumpReads();
  void Break(absl::Status cause);
  void DestroyQueues();
  void TakeEvents();
  void TakeSocket();

  // Readable when the peer has gone.
  int EndsFd() const {
    return path_.id.get() != nullptr ? path_.id.channel().fd() : path_.socket.get();
  }

  bool SomethingToPoll() const { return !replies_.empty() || reads_.anything_to_poll(); }
  bool Spin(int64_t deadline_ns);
  void Sleep(int64_t deadline_ns);
  void KeepAlive();

  ClientPath path_;
  AsyncEvents async_;
  RegisteredPages hello_page_;  // of the handshake's messages: two to send, one to receive
  RegisteredPages frames_;      // receives, sends, 8 bytes of scratch
  ClientBuffers buffers_;
  SendQueue sends_;
  ReadWindow reads_;
  std::vector<uint32_t> free_sends_;
  std::deque<Reply> replies_;
  std::optional<uint32_t> lent_;  // the receive that the caller looks at
  bool greeting_ = true;                  // the handshake is under way
  std::vector<std::byte> greeting_bytes_;  // the server's next message of it
  size_t message_bytes_ = 0;
  uint32_t outstanding_ = 0;  // requests without a reply that was taken
  uint32_t credits_ = 0;
  bool keep_alive_under_way_ = false;
  bool probe_done_ = false;
  bool admitted_ = false;
  bool path_is_dead_ = false;  // when it broke
  int64_t spin_ns_;
  int64_t events_looked_at_ns_ = 0;
  int64_t asleep_since_ns_ = 0;
  absl::Status broken_;
};

}  // namespace kvd::verbs
