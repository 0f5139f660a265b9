#include "server/session/audit_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/admission/role.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "server/session/session_report.h"

namespace kvd {
namespace {

using Line = nlohmann::ordered_json;

absl::StatusOr<UniqueFd> OpenFile(const std::string& path) {
  if (path == "-") return UniqueFd();
  UniqueFd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file.valid()) return ErrnoStatus(absl::StrCat("open of the audit log ", path));
  return file;
}

Line Begin(const char* event, int64_t now_unix_us) {
  Line line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(now_unix_us),
                                  absl::UTCTimeZone());
  line["event"] = event;
  return line;
}

void AddPeer(const PeerIdentity& peer, std::string_view name, Line& line) {
  line["name"] = Harmless(name);
  line["transport"] = peer.transport;
  line["address"] = Harmless(peer.address);
  if (peer.pid != 0) {
    line["pid"] = peer.pid;
    line["uid"] = peer.uid;
    line["gid"] = peer.gid;
  }
  if (peer.key != nullptr) line["key"] = peer.key->name;
}

void AddSession(const SessionFacts& session, Line& line) {
  line["session"] = session.session_id;
  line["client"] = absl::StrFormat("%016x", session.client_id);
  AddPeer(session.peer, session.name, line);
  line["role"] = NameOf(session.role);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         const Clock& clock) {
  KVD_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(path));
  return std::unique_ptr<AuditLog>(new AuditLog(path, std::move(file), clock));
}

void AuditLog::Admitted(const SessionFacts& session) {
  Line line = Begin("admitted", clock_.NowUnixUs());
  AddSession(session, line);
  Write(line.dump());
}

void AuditLog::Refused(const PeerIdentity& peer, std::string_view name, std::string_view why) {
  Line line = Begin("refused", clock_.NowUnixUs());
  AddPeer(peer, name, line);
  line["why"] = why;
  Write(line.dump(-1, ' ', false, Line::error_handler_t::replace));
}

void AuditLog::Ended(const SessionFacts& session) {
  Line line = Begin("ended", clock_.NowUnixUs());
  AddSession(session, line);
  line["seconds"] = static_cast<double>(clock_.NowUnixUs() - session.since_unix_us) / 1'000'000;
  Write(line.dump());
}

void AuditLog::Kicked(const SessionFacts& session, std::string_view why, uint64_t by) {
  Line line = Begin("kicked", clock_.NowUnixUs());
  AddSession(session, line);
  line["why"] = why;
  if (by != 0) line["by_session"] = by;
  Write(line.dump());
}

void AuditLog::Reloaded(std::string_view error, uint64_t sessions_ended) {
  Line line = Begin("reloaded", clock_.NowUnixUs());
  line["ok"] = error.empty();
  if (!error.empty()) line["error"] = error;
  line["sessions_ended"] = sessions_ended;
  Write(line.dump(-1, ' ', false, Line::error_handler_t::replace));
}

absl::Status AuditLog::Reopen() {
  KVD_ASSIGN_OR_RETURN(UniqueFd file, OpenFile(path_));
  const std::lock_guard lock(mutex_);
  file_ = std::move(file);
  return absl::OkStatus();
}

uint64_t AuditLog::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// In one piece, so that lines of several processes do not mix.
void AuditLog::Write(std::string line) {
  line += '\n';
  const std::lock_guard lock(mutex_);
  const int fd = file_.valid() ? file_.get() : STDERR_FILENO;
  ssize_t written = 0;
  do {
    written = write(fd, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(line.size())) ++lost_;
}

}  // namespace kvd
