// Who becomes a session.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/layout/frames.h"
#include "common/protocol/geometry.h"
#include "common/transport/server_endpoint.h"

namespace kvd {

// Admits every peer that the transport lets through (over shared memory: whoever may open the
// socket) until sessions_max are there or the server shuts down. Beyond sessions_max there are a
// few for administration by this process's user or root over shared memory. Thread-safe; never
// blocks for long.
class AdmissionPolicy final : public Admission {
 public:
  struct Options {
    Geometry geometry;
    uint32_t sessions_max = 1024;
    uint32_t credits_max = 64;  // a client gets what it wants up to this
    uint32_t frame_bytes = kFrameBytesDefault;
    uint64_t max_value_bytes = 0;
    // The server evicts, and wants to know what its clients read.
    bool wants_hits = false;
    // Clients without a session whose replies are still kept, at most.
    uint32_t absent_clients_max = 4096;
  };

  // Sessions that are kept for administration. Whoever has one keeps it, and does not count among
  // sessions_max, until it ends.
  static constexpr uint32_t kAdministrationSessions = 2;

  // How long the replies of a client without a session are kept: a client that comes back within
  // this time may send again what was not answered.
  static constexpr int64_t kRepliesKeptNs = 60'000'000'000;

  // The clock outlives this object.
  AdmissionPolicy(const Options& options, const Clock& clock) : options_(options), clock_(clock) {}

  Welcome Admit(const PeerIdentity& peer, const Hello& hello) override;
  void Gone(uint64_t session_id) override;
  void CountRefusal() override { refused_.fetch_add(1, std::memory_order_relaxed); }

  // Whether the client has a session, or had one less than kRepliesKeptNs ago. One that is not
  // known any more will be told so should it come back, so what is kept for it may go.
  bool KnowsClient(uint64_t client_id);

  // From now on everybody is refused with kShuttingDown.
  void BeginShutdown() { shutting_down_.store(true, std::memory_order_relaxed); }

  // For the statistics.
  uint64_t sessions() const;
  uint64_t sessions_total() const { return admitted_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Client {
    uint32_t sessions = 0;
    int64_t gone_ns = 0;  // when the last session ended, if there is none
  };

  struct Live {
    uint64_t client_id = 0;
    bool kept_for_administration = false;  // takes one of kAdministrationSessions
  };

  Welcome Refuse(WelcomeStatus status, std::string_view why);
  void ForgetAbsent(int64_t now_ns);

  const Options options_;
  const Clock& clock_;
  std::atomic<bool> shutting_down_{false};
  std::atomic<uint64_t> admitted_{0};
  std::atomic<uint64_t> refused_{0};
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<uint64_t, Live> live_;  // by session id
  uint32_t administrators_ = 0;              // of live_, those that take a session kept for them
  std::unordered_map<uint64_t, Client> clients_;
  std::deque<std::pair<int64_t, uint64_t>>
      absent_;  // gone_ns and client id, the earliest first; some are back
};

}  // namespace kvd
