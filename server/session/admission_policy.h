// Who becomes a session.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "common/admission/access_rules.h"
#include "common/admission/admission.h"
#include "common/base/clock.h"
#include "common/layout/frames.h"
#include "common/protocol/geometry.h"
#include "server/session/address_limits.h"
#include "server/session/audit_log.h"
#include "server/session/session_facts.h"

namespace kvd {

// Without access rules, admits every peer that the transport lets through (over shared memory:
// whoever may open the socket); with them, who has a key, and over shared memory also whom they
// name, and this process's user and root. Until sessions_max are there or the server shuts down;
// beyond sessions_max there are a few for administration by this process's user or root over shared
// memory. Thread-safe; never blocks for long.
class AdmissionPolicy final : public Admission {
 public:
  struct Options {
    Geometry geometry;
    std::shared_ptr<const AccessRules> access;  // null: none
    AddressLimits::Options of_address;          // not for this process's user and root
    AuditLog* audit = nullptr;                  // null: none; outlives the policy
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
  AdmissionPolicy(const Options& options, const Clock& clock)
      : options_(options), clock_(clock), access_(options.access), limits_(options.of_address) {}

  std::optional<std::string> TurnAway(const PeerIdentity& peer) override;
  bool WantsProof(const PeerIdentity& peer, const Hello& hello) override;
  std::shared_ptr<const AccessKey> FindKey(std::string_view name) override;
  Welcome Admit(const PeerIdentity& peer, const Hello& hello) override;
  void Gone(uint64_t session_id) override;
  // Where it is counted from now on what the session does; nothing if there is none of that id.
  void Attach(uint64_t session_id, std::shared_ptr<const SessionCounters> counters);
  void NoteRefusal(const PeerIdentity& peer, const Hello& hello, std::string_view why) override;
  void CountRefusal() override { refused_.fetch_add(1, std::memory_order_relaxed); }

  // Whether the client has a session, or had one less than kRepliesKeptNs ago. One that is not
  // known any more will be told so should it come back, so what is kept for it may go.
  bool KnowsClient(uint64_t client_id);

  // From now on these rules hold (null: none). Returns the sessions that they would not admit, or
  // not in the role that they have, or whose key has another secret now: the caller ends them.
  std::vector<SessionFacts> Replace(std::shared_ptr<const AccessRules> access);

  // In the order of their ids.
  std::vector<SessionFacts> Sessions() const;

  // Notes that these sessions are to end, for whoever meets one of them only later: a session is
  // admitted a little before its poller knows of it.
  void Expel(const std::vector<uint64_t>& session_ids, const absl::Status& reason);
  // Ok: it may stay.
  absl::Status WhyExpelled(uint64_t session_id) const;

  // From now on everybody is refused with kShuttingDown.
  void BeginShutdown() { shutting_down_.store(true, std::memory_order_relaxed); }

  // For the statistics.
  uint64_t sessions() const;
  uint64_t sessions_over(std::string_view transport) const;
  uint64_t sessions_total() const { return admitted_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Client {
    uint32_t sessions = 0;
    int64_t gone_ns = 0;  // when the last session ended, if there is none
  };

  struct Live {
    SessionFacts facts;
    absl::Status expelled = {};            // why, if it is
    bool kept_for_administration = false;  // takes one of kAdministrationSessions
  };

  Welcome Refuse(const PeerIdentity& peer, const Hello& hello, WelcomeStatus status,
                 std::string_view why);
  // Admits, or says why not: with the lock held.
  struct Verdict {
    WelcomeStatus status = WelcomeStatus::kAdmitted;
    std::string why = {};
    SessionFacts facts = {};
    bool kept_for_administration = false;
    bool replies_kept = false;
  };
  Verdict Judge(const PeerIdentity& peer, const Hello& hello);
  void ForgetAbsent(int64_t now_ns);
  // kNone: it is not admitted.
  static Role RoleOf(const PeerIdentity& peer, const AccessRules* access);

  const Options options_;
  const Clock& clock_;
  std::atomic<bool> shutting_down_{false};
  std::atomic<uint64_t> admitted_{0};
  std::atomic<uint64_t> refused_{0};
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<const AccessRules> access_;
  AddressLimits limits_;
  std::unordered_map<uint64_t, Live> live_;  // by session id
  uint32_t administrators_ = 0;              // of live_, those that take a session kept for them
  std::unordered_map<uint64_t, Client> clients_;
  std::deque<std::pair<int64_t, uint64_t>>
      absent_;  // gone_ns and client id, the earliest first; some are back
};

}  // namespace kvd
