// Who was let in, turned away and sent away, as one JSON object a line. Never a key or a value of
// an item, never a secret.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/line_writer.h"
#include "common/base/unique_fd.h"
#include "server/session/refusal_folding.h"
#include "server/session/session_facts.h"

namespace kvd {

// Thread-safe. Waits for no file: lines are queued, and a thread of its own writes them. What a
// full disk or a pipe that nobody reads does not take is counted and otherwise lost; where the file
// goes on it says how much is missing. Of refusals each address has one line and then a count
// (refusal_folding.h); every other event has its line.
class AuditLog {
 public:
  // About lines that are lost; any thread, must not block. Empty: nobody wants to know.
  using Log = std::function<void(const std::string&)>;

  // Appends to the file at `path` ("-": standard error), which is made for its owner alone. Errors:
  // as OpenAuditFile. The clock outlives the log.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path, const Clock& clock,
                                                        Log log = {});
  // Takes a second at most, whatever the file does.
  ~AuditLog();

  void Admitted(const SessionFacts& session);
  void Refused(const PeerIdentity& peer, std::string_view name, std::string_view why);
  void Ended(const SessionFacts& session);
  // `by`: the session that asked for it.
  void Kicked(const SessionFacts& session, std::string_view why, uint64_t by);
  // `error`: empty: the rules hold now.
  void Reloaded(std::string_view error, uint64_t sessions_ended);

  // Opens the path anew: whoever rotates logs has moved the file away. Errors: as OpenAuditFile;
  // the file stays the one that it was.
  absl::Status Reopen();

  // Blocks until what was noted so far has been written or is lost, for a second at most. False: it
  // has not.
  bool Flush();

  uint64_t lost() const { return writer_->lost(); }

 private:
  AuditLog(std::string path, UniqueFd file, const Clock& clock, Log log);

  std::string LostLine(uint64_t lines) const;
  void WriteDue();
  void Write(const std::vector<RefusalFolding::More>& folded);

  const std::string path_;
  const Clock& clock_;
  std::mutex mutex_;
  RefusalFolding refusals_;             // guarded by mutex_
  std::unique_ptr<LineWriter> writer_;  // its thread uses the rest
};

}  // namespace kvd
