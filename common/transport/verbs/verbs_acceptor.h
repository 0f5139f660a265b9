// The thread that makes and destroys connections: it listens, judges private data and hellos, asks
// Admission, and reads what rdma_cm and the device have to say. No poller ever waits for any of
// that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/admission/server_dialogue.h"
#include "common/base/unique_fd.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/verbs/async_events.h"
#include "common/transport/verbs/cm_id.h"
#include "common/transport/verbs/limits.h"
#include "common/transport/verbs/server_device.h"
#include "common/transport/verbs/verbs_counters.h"
#include "common/transport/verbs/verbs_server_endpoint.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

class VerbsAcceptor final : public ConnectionOwner {
 public:
  static constexpr size_t kHandshakesMax = 256;           // at once
  static constexpr int64_t kHandshakeNs = 2'000'000'000;  // for a client's hello to arrive
  static constexpr int kBacklog = 1024;

  struct Options {
    std::shared_ptr<const ServerDevice> device;
    std::vector<VerbsServerEndpoint*> endpoints;
    Limits limits;
    uint32_t frame_bytes = 0;
    std::function<void(const std::string&)> log;
    Counters* counters = nullptr;
    uint8_t port = 1;    // of the device, for TCP exchanges
    int gid_index = -1;  // for TCP exchanges; -1: chosen
    // The device is being removed; later: nothing of it is held any more. On the acceptor's thread.
    std::function<void(const absl::Status& cause)> device_goes;
    std::function<void()> device_released;
  };

  VerbsAcceptor(Options options, std::shared_ptr<CmEventChannel> events);
  // Ends the thread and every connection that is left.
  ~VerbsAcceptor() override;

  // Endpoints are made after their owner.
  void set_endpoints(std::vector<VerbsServerEndpoint*> endpoints) {
    options_.endpoints = std::move(endpoints);
  }

  // Begins to accept at a bound id of the event channel, or at a TCP socket that listens; once.
  absl::Status Start(CmId bound, Admission& admission);
  absl::Status StartTcp(UniqueFd listening, Admission& admission);

  // From its return on nobody new is accepted; those in their handshake are told. Idempotent.
  void StopAccepting();

  void HelloArrived(ChannelId channel, std::span<const std::byte> hello) override;
  void Retired(ChannelId channel) override;
  void DeviceReleased() override;

 private:
  struct Connection {
    CmId id;          // of rdma_cm, or
    UniqueFd socket;  // of a TCP exchange
    std::shared_ptr<QueuePair> qp;
    VerbsServerEndpoint* endpoint = nullptr;
    std::string address;
    ChannelEnds ends;                                    // but for the queue pairs' numbers
    std::unique_ptr<ServerDialogue> dialogue = nullptr;  // null: it has said nothing yet
    uint32_t queue_credits = 0;
    int64_t deadline_ns = 0;  // 0: its hello has come
  };

  struct Command {
    enum class Kind : uint8_t { kHello, kRetired, kDeviceReleased } kind{};
    ChannelId channel{};
    std::vector<std::byte> hello;
  };

  void Run();
  int WaitMs() const;
  void DropLate();
  void TakeCommands();
  void TakeCmEvents();
  void Wake();

  void Connect(CmEvent event);
  absl::Status Accept(const CmEvent& event, CmId& id);
  // Makes the queue pair, brings it up and hands it to an endpoint.
  absl::StatusOr<ChannelId> Open(uint32_t credits_wanted, const ReadDepth& depth,
                                 const std::function<absl::Status(QueuePair&)>& bring_up,
                                 Connection connection);
  absl::StatusOr<VerbsServerEndpoint*> ReserveRoom(uint32_t credits);
  void Reject(rdma_cm_id* id, WelcomeStatus status, std::string_view why);
  // `address`: empty: not known.
  void NoteRefusal(const std::string& address, const Hello& hello, std::string_view why);
  void Ended(ChannelId channel, const absl::Status& cause);

  void WatchDevice();
  void TakeAsyncEvents();
  void LookAtDevice();
  bool Going() const { return !gone_cause_.ok(); }
  absl::Status RemovalCause() const;
  void DeviceGoes(const absl::Status& cause);
  void GoOnReleasing();
  void CloseListener();

  void Greet(ChannelId channel, std::span<const std::byte> message);
  void Admit(Connection& connection, ChannelId channel);
  void Refuse(Connection& connection, ChannelId channel, const Welcome& refusal,
              const absl::Status& cause);

  void TakeTcpEvents();
  void AcceptTcp();
  void GiveUpOldestGreeting();
  void PauseAccepting();
  void ResumeAccepting();
  void RefuseTcp(int fd, WelcomeStatus status, std::string_view why);
  void TakeExchange(int fd);
  absl::Status Exchange(UniqueFd& socket, std::span<const std::byte> request);

  // A TCP peer that has not said all yet.
  struct Greeting {
    UniqueFd socket;
    int64_t deadline_ns = 0;
    std::vector<std::byte> bytes;
  };

  Options options_;
  std::shared_ptr<CmEventChannel> events_;  // null: TCP only
  std::optional<AsyncEvents> async_;
  CmId watch_;     // bound to the device, to be told of its removal; the thread's own
  CmId listener_;  // guarded by mutex_ once the thread runs
  UniqueFd tcp_listener_;
  UniqueFd tcp_epoll_;
  UniqueFd spare_;  // given up to refuse a TCP peer where there is no other descriptor
  UniqueFd wake_;
  Admission* admission_ = nullptr;

  std::mutex mutex_;
  std::vector<Command> commands_;  // guarded by mutex_
  bool stopping_ = false;          // guarded by mutex_
  bool not_accepting_ = false;     // guarded by mutex_

  // The thread's own, from here on.
  std::map<ChannelId, Connection> connections_;
  std::map<int, Greeting> greetings_;
  int64_t resume_at_ns_ = 0;  // when the TCP listener is watched again; 0: it is
  uint64_t next_id_ = 1;
  size_t handshakes_ = 0;
  absl::Status gone_cause_;  // why the device goes, if it does
  bool release_asked_ = false;
  size_t endpoints_holding_ = 0;  // the device, since they were asked to let go
  std::thread thread_;
};

}  // namespace kvd::verbs
