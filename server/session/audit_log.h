// Who was let in, turned away and sent away, as one JSON object a line. Never a key or a value of
// an item, never a secret.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "server/session/session_facts.h"

namespace kvd {

// Thread-safe. Blocks as a write to the file does. A line that cannot be written is counted and
// otherwise lost: no session waits for a full disk.
class AuditLog {
 public:
  // Appends to the file at `path` ("-": standard error), which is made for its owner alone. Errors:
  // as ErrnoStatus makes of open's errno, with the path. The clock outlives the log.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path,
                                                        const Clock& clock);

  void Admitted(const SessionFacts& session);
  void Refused(const PeerIdentity& peer, std::string_view name, std::string_view why);
  void Ended(const SessionFacts& session);
  // `by`: the session that asked for it.
  void Kicked(const SessionFacts& session, std::string_view why, uint64_t by);
  // `error`: empty: the rules hold now.
  void Reloaded(std::string_view error, uint64_t sessions_ended);

  // Opens the path anew: whoever rotates logs has moved the file away.
  absl::Status Reopen();

  uint64_t lost() const;

 private:
  AuditLog(std::string path, UniqueFd file, const Clock& clock)
      : path_(std::move(path)), clock_(clock), file_(std::move(file)) {}

  void Write(std::string line);

  const std::string path_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  UniqueFd file_;      // guarded by mutex_; invalid: standard error
  uint64_t lost_ = 0;  // guarded by mutex_
};

}  // namespace kvd
