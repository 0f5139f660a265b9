#include "server/kvd_access.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/admission/access_rules.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "server/session/session_report.h"

namespace kvd {

absl::StatusOr<std::unique_ptr<KvdAccess>> KvdAccess::Create(Options options, const Clock& clock) {
  std::unique_ptr<AuditLog> audit;
  if (!options.audit_path.empty()) {
    KVD_ASSIGN_OR_RETURN(audit, AuditLog::Open(options.audit_path, clock, options.log));
  }
  return std::unique_ptr<KvdAccess>(new KvdAccess(std::move(options), std::move(audit)));
}

void KvdAccess::Attach(AdmissionPolicy& policy, const std::vector<Poller*>& pollers) {
  policy_ = &policy;
  pollers_ = &pollers;
}

void KvdAccess::End(const std::vector<SessionFacts>& sessions, std::string_view why, uint64_t by) {
  if (sessions.empty()) return;
  std::vector<uint64_t> ids;
  for (const SessionFacts& session : sessions) {
    ids.push_back(session.session_id);
    if (audit_ != nullptr) audit_->Kicked(session, why, by);
    options_.log(absl::StrCat("session ", session.session_id, " (", Harmless(session.name),
                              ") is ended: ", ToAbsl(why)));
  }
  const absl::Status reason = absl::PermissionDeniedError(ToAbsl(why));
  policy_->Expel(ids, reason);
  // Which poller has which session only they know.
  for (Poller* poller : *pollers_) poller->EndSessions(ids, reason);
}

void KvdAccess::Reload() {
  if (audit_ != nullptr) {
    if (const absl::Status opened = audit_->Reopen(); !opened.ok()) {
      options_.log(absl::StrCat("SIGHUP: the audit log stays as it was: ", opened.message()));
    }
  }
  if (options_.keys_path.empty()) return options_.log("SIGHUP: no --keys to read anew");
  absl::StatusOr<AccessRules> rules = ReloadAccessRules(options_.keys_path);
  if (!rules.ok()) {
    options_.log(absl::StrCat("SIGHUP: the keys stay as they were, also those that were to go: ",
                              rules.status().message()));
    if (audit_ != nullptr) audit_->Reloaded(ToStd(rules.status().message()), 0);
    return;
  }
  const size_t keys = rules->keys.size();
  const size_t peers = rules->peers.size();
  const std::vector<SessionFacts> gone =
      policy_->Replace(std::make_shared<const AccessRules>(*std::move(rules)));
  if (keys + peers == 0) {
    options_.log(absl::StrCat("SIGHUP: ", options_.keys_path,
                              " has no line: nobody is let in but kvd's own user and root"));
  }
  options_.log(absl::StrCat("SIGHUP: ", keys, keys == 1 ? " key and " : " keys and ", peers,
                            peers == 1 ? " rule" : " rules", " of ", options_.keys_path,
                            " hold from now on; sessions ended: ", gone.size()));
  if (audit_ != nullptr) audit_->Reloaded({}, gone.size());
  End(gone, "its key or rule was changed or taken away", 0);
}

absl::StatusOr<uint64_t> KvdAccess::Kick(std::string_view who, uint64_t asking_session_id) {
  std::vector<SessionFacts> sessions = policy_->Sessions();
  KVD_ASSIGN_OR_RETURN(const std::vector<uint64_t> meant, SessionsMeant(sessions, who));
  const auto stays = [&](const SessionFacts& session) {
    return session.session_id == asking_session_id ||
           std::find(meant.begin(), meant.end(), session.session_id) == meant.end();
  };
  sessions.erase(std::remove_if(sessions.begin(), sessions.end(), stays), sessions.end());
  End(sessions, "an administrator ended this session", asking_session_id);
  return sessions.size();
}

std::string KvdAccess::DescribeSessions() const {
  return kvd::DescribeSessions(policy_->Sessions());
}

}  // namespace kvd
