// The thread that takes connections on the Unix socket, through the handshake, to an endpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/admission/admission.h"
#include "common/admission/server_dialogue.h"
#include "common/base/unique_fd.h"
#include "common/base/user_namespace.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/shm/descriptor_closer.h"
#include "common/transport/shm/shm_server_endpoint.h"

namespace kvd {

class ShmAcceptor {
 public:
  // Half-open connections at once; where this process may have few descriptors, no more than a
  // quarter of them. The oldest makes room, but none before it has had kGraceNs to say Hello: until
  // then further clients wait in the listener's queue. They also wait while another quarter is yet
  // to be closed (descriptor_closer.h), and beyond a half nobody's hello is taken: what comes and
  // goes quickly leaves descriptors to sessions.
  static constexpr size_t kHandshakesMax = 512;
  static constexpr int64_t kGraceNs = 100'000'000;
  static constexpr size_t kAcceptedPerRound = 16;         // then those that speak are answered
  static constexpr int64_t kHandshakeNs = 2'000'000'000;  // for all that a client has to say
  static constexpr int64_t kPauseNs = 100'000'000;  // before accepting again without descriptors
  static constexpr int64_t kCloserNs = 2'000'000;   // or while too many are yet to be closed

  struct Options {
    std::string path;
    int region_fd = -1;  // borrowed
    std::vector<ShmServerEndpoint*> endpoints;
    Admission* admission = nullptr;
  };

  // Takes over a listening, non-blocking socket and starts the thread.
  static absl::StatusOr<std::unique_ptr<ShmAcceptor>> Start(Options options, UniqueFd listener);

  // Ends the thread; whoever is in the middle of a handshake is told that the server is shutting
  // down.
  ~ShmAcceptor();
  ShmAcceptor(const ShmAcceptor&) = delete;
  ShmAcceptor& operator=(const ShmAcceptor&) = delete;

 private:
  struct Handshake {
    PeerSocket socket;
    int64_t deadline_ns;
    std::unique_ptr<ServerDialogue> dialogue;
  };

  ShmAcceptor(Options options, UniqueFd listener, UniqueFd epoll, UniqueFd stop);

  void Run();
  int WaitMs() const;
  void Watch(int fd);
  static void Refuse(Handshake& handshake, WelcomeStatus status, std::string_view why);
  bool GiveUpOldest(WelcomeStatus status, std::string_view why);
  void AcceptSome();
  void Begin(PeerSocket socket);
  bool MakeRoom();
  void StopListening(int64_t until_ns);
  void PauseAccepting();
  void ResumeAccepting();
  void DropLate();
  void Answer(int fd);
  // False: it is to say more.
  bool Hear(Handshake& handshake, std::span<const std::byte> frame);
  void Admit(Handshake& handshake);
  // Takes the socket only if the session reached an endpoint.
  absl::Status HandOver(Handshake& handshake);

  Options options_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd stop_;
  UniqueFd spare_;  // given up for a moment to refuse a client when there are no other descriptors
  std::list<Handshake> handshakes_;  // oldest first
  const UserNamespace here_ = UserNamespace::OfThisProcess();
  const size_t quarter_;  // of the descriptors that this process may have
  const size_t handshakes_max_;
  int64_t resume_at_ns_ = 0;       // not 0: not accepting until then,
  bool resume_with_room_ = false;  // or until a handshake has ended
  std::thread thread_;
};

}  // namespace kvd
