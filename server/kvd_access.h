// Who may be connected, while kvd runs: the key file read anew, sessions ended, and the audit log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/poller/poller.h"
#include "server/session/admission_policy.h"
#include "server/session/audit_log.h"

namespace kvd {

// Thread-safe once Attach has been called.
class KvdAccess {
 public:
  struct Options {
    std::string keys_path;   // empty: no key file
    std::string audit_path;  // empty: no audit log; "-": standard error
    std::function<void(const std::string&)> log;
  };

  // Errors: as AuditLog::Open. The clock outlives this object.
  static absl::StatusOr<std::unique_ptr<KvdAccess>> Create(Options options, const Clock& clock);

  // Null: there is none.
  AuditLog* audit() const { return audit_.get(); }

  // What is looked after from now on; both outlive this object's last call.
  void Attach(AdmissionPolicy& policy, const std::vector<Poller*>& pollers);

  // Reads the key file anew and ends the sessions that it does not admit any more; opens the audit
  // log anew. Where the file cannot be read or is wrong, the rules before it go on, and the log
  // says so. Blocks for the files.
  void Reload();

  // Ends the sessions that `who` means (session_report.h), but not the one that asks. Returns how
  // many. Errors: as SessionsMeant; nobody's session ends.
  absl::StatusOr<uint64_t> Kick(std::string_view who, uint64_t asking_session_id);

  std::string DescribeSessions() const;

 private:
  KvdAccess(Options options, std::unique_ptr<AuditLog> audit)
      : options_(std::move(options)), audit_(std::move(audit)) {}

  void End(const std::vector<SessionFacts>& sessions, std::string_view why, uint64_t by);

  const Options options_;
  const std::unique_ptr<AuditLog> audit_;
  AdmissionPolicy* policy_ = nullptr;
  const std::vector<Poller*>* pollers_ = nullptr;
};

}  // namespace kvd
