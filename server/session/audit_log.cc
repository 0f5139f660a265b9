#include "server/session/audit_log.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/admission/role.h"
#include "common/base/status_macros.h"
#include "server/session/address_limits.h"
#include "server/session/audit_file.h"
#include "server/session/session_report.h"

namespace kvd {
namespace {

using Line = nlohmann::ordered_json;

Line Begin(const char* event, int64_t now_unix_us) {
  Line line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(now_unix_us),
                                  absl::UTCTimeZone());
  line["event"] = event;
  return line;
}

// What clients say is whatever bytes they like; in ASCII none of them does anything to a terminal.
std::string TextOf(const Line& line) {
  return line.dump(-1, ' ', true, Line::error_handler_t::replace);
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
                                                         const Clock& clock, Log log) {
  KVD_ASSIGN_OR_RETURN(UniqueFd file, OpenAuditFile(path));
  return std::unique_ptr<AuditLog>(new AuditLog(path, std::move(file), clock, std::move(log)));
}

AuditLog::AuditLog(std::string path, UniqueFd file, const Clock& clock, Log log)
    : path_(std::move(path)), clock_(clock) {
  LineWriter::Options options;
  options.name = absl::StrCat("the audit log ", path_);
  options.thread_name = "kvd-audit";
  options.lost_line = [this](uint64_t lines) { return LostLine(lines); };
  options.log = std::move(log);
  options.tick = [this] { WriteDue(); };
  writer_ = std::make_unique<LineWriter>(std::move(file), std::move(options));
}

AuditLog::~AuditLog() {
  {
    const std::lock_guard lock(mutex_);
    Write(refusals_.TakeAll(clock_.NowMonotonicNs()));
  }
  writer_.reset();
}

void AuditLog::Admitted(const SessionFacts& session) {
  Line line = Begin("admitted", clock_.NowUnixUs());
  AddSession(session, line);
  writer_->Add(TextOf(line));
}

void AuditLog::Refused(const PeerIdentity& peer, std::string_view name, std::string_view why) {
  const int64_t now_ns = clock_.NowMonotonicNs();
  const std::lock_guard lock(mutex_);
  Write(refusals_.TakeDue(now_ns));
  if (!refusals_.Note(peer, why, now_ns)) return;
  Line line = Begin("refused", clock_.NowUnixUs());
  AddPeer(peer, name, line);
  line["why"] = why;
  writer_->Add(TextOf(line));
}

void AuditLog::Ended(const SessionFacts& session) {
  Line line = Begin("ended", clock_.NowUnixUs());
  AddSession(session, line);
  line["seconds"] = static_cast<double>(clock_.NowUnixUs() - session.since_unix_us) / 1'000'000;
  writer_->Add(TextOf(line));
}

void AuditLog::Kicked(const SessionFacts& session, std::string_view why, uint64_t by) {
  Line line = Begin("kicked", clock_.NowUnixUs());
  AddSession(session, line);
  line["why"] = why;
  if (by != 0) line["by_session"] = by;
  writer_->Add(TextOf(line));
}

void AuditLog::Reloaded(std::string_view error, uint64_t sessions_ended) {
  Line line = Begin("reloaded", clock_.NowUnixUs());
  line["ok"] = error.empty();
  if (!error.empty()) line["error"] = error;
  line["sessions_ended"] = sessions_ended;
  writer_->Add(TextOf(line));
}

absl::Status AuditLog::Reopen() {
  KVD_ASSIGN_OR_RETURN(UniqueFd file, OpenAuditFile(path_));
  if (file.valid()) writer_->Replace(std::move(file));
  return absl::OkStatus();
}

bool AuditLog::Flush() { return writer_->Flush(); }

// By the writer's thread.
std::string AuditLog::LostLine(uint64_t lines) const {
  Line line = Begin("lost", clock_.NowUnixUs());
  line["lines"] = lines;
  return line.dump();
}

void AuditLog::WriteDue() {
  const std::lock_guard lock(mutex_);
  Write(refusals_.TakeDue(clock_.NowMonotonicNs()));
}

// With the lock held, so that an address's count comes before its next refusal.
void AuditLog::Write(const std::vector<RefusalFolding::More>& folded) {
  for (const RefusalFolding::More& more : folded) {
    Line line = Begin("refused_more", clock_.NowUnixUs());
    line["lines"] = more.count;
    line["seconds"] = static_cast<double>(more.ns) / 1'000'000'000;
    line["transport"] = more.peer.transport;
    if (more.many_addresses) {
      line["address"] = "many";
    } else if (more.peer.transport == "shm") {
      line["address"] = Harmless(more.peer.address);
      line["uid"] = more.peer.uid;
    } else {
      line["address"] = Harmless(AddressLimits::AddressOf(more.peer));
    }
    line["why"] = more.why;
    writer_->Add(TextOf(line));
  }
}

}  // namespace kvd
