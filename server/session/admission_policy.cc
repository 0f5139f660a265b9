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

namespace {

// May look after this server: asks to, and could do anything to its process anyway.
bool IsAdministrator(const PeerIdentity& peer, const Hello& hello) {
  return (hello.feature_bits & kFeatureAdministration) != 0 && peer.transport == "shm" &&
         (peer.uid == geteuid() || peer.uid == 0);
}

}  // namespace

Welcome AdmissionPolicy::Admit(const PeerIdentity& peer, const Hello& hello) {
  if (shutting_down_.load(std::memory_order_relaxed)) {
    return Refuse(WelcomeStatus::kShuttingDown, "kvd is shutting down");
  }
  uint64_t session_id;
  bool replies_kept;
  bool kept = false;
  {
    const std::lock_guard lock(mutex_);
    if (live_.size() - administrators_ >= options_.sessions_max) {
      kept = IsAdministrator(peer, hello) && administrators_ < kAdministrationSessions;
      if (!kept)
        return Refuse(WelcomeStatus::kFull,
                      absl::StrCat("--max_clients=", options_.sessions_max, " reached; raise it"));
    }
    session_id = admitted_.fetch_add(1, std::memory_order_relaxed) + 1;
    ForgetAbsent(clock_.NowMonotonicNs());
    live_.emplace(session_id, Live{hello.client_id, kept});
    administrators_ += kept ? 1 : 0;
    const auto [client, first] = clients_.try_emplace(hello.client_id);
    ++client->second.sessions;
    replies_kept = !first;
  }
  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.status = static_cast<uint32_t>(WelcomeStatus::kAdmitted);
  welcome.feature_bits = kept ? kFeatureAdministration : 0;
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
  welcome.flags =
      (replies_kept ? kWelcomeRepliesKept : 0) | (options_.wants_hits ? kWelcomeWantsHits : 0);
  welcome.server_pid = static_cast<uint32_t>(getpid());
  return welcome;
}

void AdmissionPolicy::Gone(uint64_t session_id) {
  const std::lock_guard lock(mutex_);
  const auto session = live_.find(session_id);
  KVD_CHECK(session != live_.end());
  administrators_ -= session->second.kept_for_administration ? 1 : 0;
  const uint64_t client_id = session->second.client_id;
  Client& client = clients_.at(client_id);
  if (--client.sessions == 0) {
    client.gone_ns = clock_.NowMonotonicNs();
    absent_.emplace_back(client.gone_ns, client_id);
    ForgetAbsent(client.gone_ns);
  }
  live_.erase(session);
}

void AdmissionPolicy::ForgetAbsent(int64_t now_ns) {
  while (!absent_.empty() && (absent_.size() > options_.absent_clients_max ||
                              now_ns - absent_.front().first >= kRepliesKeptNs)) {
    const auto [gone_ns, client_id] = absent_.front();
    absent_.pop_front();
    const auto client = clients_.find(client_id);
    // One that came back and went again stands further behind as well.
    if (client == clients_.end() || client->second.sessions != 0 ||
        client->second.gone_ns != gone_ns) {
      continue;
    }
    clients_.erase(client);
  }
}

bool AdmissionPolicy::KnowsClient(uint64_t client_id) {
  const std::lock_guard lock(mutex_);
  ForgetAbsent(clock_.NowMonotonicNs());
  return clients_.count(client_id) != 0;
}

uint64_t AdmissionPolicy::sessions() const {
  const std::lock_guard lock(mutex_);
  return live_.size();
}

}  // namespace kvd
