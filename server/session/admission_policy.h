// Who becomes a session.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "common/base/clock.h"
#include "common/layout/frames.h"
#include "common/protocol/geometry.h"
#include "common/transport/server_endpoint.h"

namespace kvd {

// Admits every peer that the transport lets through (over shared memory: whoever may open the
// socket) until sessions_max are there or the server shuts down. Thread-safe; never blocks for
// long.
class AdmissionPolicy final : public Admission {
 public:
  struct Options {
    Geometry geometry;
    uint32_t sessions_max = 1024;
    uint32_t credits_max = 64;  // a client gets what it wants up to this
    uint32_t frame_bytes = kFrameBytesDefault;
    uint64_t max_value_bytes = 0;
  };

  // The clock outlives this object.
  AdmissionPolicy(const Options& options, const Clock& clock) : options_(options), clock_(clock) {}

  Welcome Admit(const PeerIdentity& peer, const Hello& hello) override;
  void Gone(uint64_t session_id) override;
  void CountRefusal() override { refused_.fetch_add(1, std::memory_order_relaxed); }

  // From now on everybody is refused with kShuttingDown.
  void BeginShutdown() { shutting_down_.store(true, std::memory_order_relaxed); }

  // For the statistics.
  uint64_t sessions() const;
  uint64_t sessions_total() const { return admitted_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Welcome Refuse(WelcomeStatus status, std::string_view why);

  const Options options_;
  const Clock& clock_;
  std::atomic<bool> shutting_down_{false};
  std::atomic<uint64_t> admitted_{0};
  std::atomic<uint64_t> refused_{0};
  mutable std::mutex mutex_;
  std::unordered_set<uint64_t> live_;  // guarded by mutex_
};

}  // namespace kvd
