#include "server/session/admission_policy.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/protocol/handshake.h"

namespace kvd {

Welcome AdmissionPolicy::Refuse(WelcomeStatus status, std::string_view why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  return MakeRefusal(status, why);
}

Welcome AdmissionPolicy::Admit(const PeerIdentity&, const Hello& hello) {
  if (shutting_down_.load(std::memory_order_relaxed)) {
    return Refuse(WelcomeStatus::kShuttingDown, "kvd is shutting down");
  }
  uint64_t session_id;
  {
    const std::lock_guard lock(mutex_);
    if (live_.size() >= options_.sessions_max) {
      return Refuse(WelcomeStatus::kFull,
                    absl::StrCat("--max_clients=", options_.sessions_max, " reached; raise it"));
    }
    session_id = admitted_.fetch_add(1, std::memory_order_relaxed) + 1;
    live_.insert(session_id);
  }
  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.status = static_cast<uint32_t>(WelcomeStatus::kAdmitted);
  welcome.incarnation = options_.geometry.incarnation;
  welcome.region_bytes = options_.geometry.region_bytes;
  welcome.bucket_bytes = options_.geometry.bucket_bytes;
  welcome.shard_count = options_.geometry.shard_count;
  welcome.directory_entries = options_.geometry.directory_entries;
  welcome.directory_offset = options_.geometry.directory_offset;
  welcome.session_id = session_id;
  welcome.credits = std::clamp<uint32_t>(hello.credits_wanted, 1, options_.credits_max);
  welcome.frame_bytes = options_.frame_bytes;
  welcome.max_value_bytes = options_.max_value_bytes;
  welcome.server_unix_us = static_cast<uint64_t>(clock_.NowUnixUs());
  welcome.server_pid = static_cast<uint32_t>(getpid());
  return welcome;
}

void AdmissionPolicy::Gone(uint64_t session_id) {
  const std::lock_guard lock(mutex_);
  KVD_CHECK(live_.erase(session_id) == 1);
}

uint64_t AdmissionPolicy::sessions() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

}  // namespace kvd
