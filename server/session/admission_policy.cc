#include "server/session/admission_policy.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/memory_reserve.h"
#include "common/protocol/handshake.h"

namespace kvd {

namespace {

// Could do anything to this process anyway.
bool IsOwner(const PeerIdentity& peer) {
  return peer.transport == "shm" && (peer.uid == geteuid() || peer.uid == 0);
}

// May look after this server, and asks to.
bool IsAdministrator(const PeerIdentity& peer, const Hello& hello) {
  return (hello.feature_bits & kFeatureAdministration) != 0 && IsOwner(peer);
}

std::string NameOf(const Hello& hello) {
  return std::string(hello.name, strnlen(hello.name, sizeof(hello.name)));
}

}  // namespace

Role AdmissionPolicy::RoleOf(const PeerIdentity& peer, const AccessRules* access) {
  if (peer.key != nullptr) {
    // The rules may have changed since it was asked for.
    const AccessKey* const key = access == nullptr ? nullptr : access->Find(peer.key->name);
    return key != nullptr && *key == *peer.key ? key->role : Role::kNone;
  }
  if (IsOwner(peer)) return Role::kAdmin;
  if (access == nullptr) return Role::kReadWrite;
  return peer.transport == "shm" ? access->RoleOf(peer.uid, peer.groups) : Role::kNone;
}

std::optional<std::string> AdmissionPolicy::TurnAway(const PeerIdentity& peer) {
  if (IsOwner(peer)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return limits_.Begin(AddressLimits::AddressOf(peer), clock_.NowMonotonicNs());
}

bool AdmissionPolicy::WantsProof(const PeerIdentity&, const Hello& hello) {
  if ((hello.feature_bits & kFeatureKey) == 0) return false;
  const std::lock_guard lock(mutex_);
  return access_ != nullptr;
}

std::shared_ptr<const AccessKey> AdmissionPolicy::FindKey(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const AccessKey* const key = access_ == nullptr ? nullptr : access_->Find(name);
  return key == nullptr ? nullptr : std::make_shared<const AccessKey>(*key);
}

std::vector<SessionFacts> AdmissionPolicy::Replace(std::shared_ptr<const AccessRules> access) {
  const std::lock_guard lock(mutex_);
  access_ = std::move(access);
  std::vector<SessionFacts> not_admitted;
  for (const auto& [id, live] : live_) {
    if (RoleOf(live.facts.peer, access_.get()) != live.facts.role)
      not_admitted.push_back(live.facts);
  }
  return not_admitted;
}

void AdmissionPolicy::Expel(const std::vector<uint64_t>& session_ids, const absl::Status& reason) {
  const std::lock_guard lock(mutex_);
  for (const uint64_t id : session_ids) {
    if (const auto session = live_.find(id); session != live_.end())
      session->second.expelled = reason;
  }
}

absl::Status AdmissionPolicy::WhyExpelled(uint64_t session_id) const {
  const std::lock_guard lock(mutex_);
  const auto session = live_.find(session_id);
  return session == live_.end() ? absl::OkStatus() : session->second.expelled;
}

std::vector<SessionFacts> AdmissionPolicy::Sessions() const {
  std::vector<SessionFacts> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, live] : live_) sessions.push_back(live.facts);
  }
  std::sort(sessions.begin(), sessions.end(), [](const SessionFacts& a, const SessionFacts& b) {
    return a.session_id < b.session_id;
  });
  return sessions;
}

void AdmissionPolicy::NoteRefusal(const PeerIdentity& peer, const Hello& hello,
                                  std::string_view why) {
  CountRefusal();
  if (options_.audit != nullptr) options_.audit->Refused(peer, NameOf(hello), why);
}

Welcome AdmissionPolicy::Refuse(const PeerIdentity& peer, const Hello& hello, WelcomeStatus status,
                                std::string_view why) {
  NoteRefusal(peer, hello, why);
  return MakeRefusal(status, why);
}

AdmissionPolicy::Verdict AdmissionPolicy::Judge(const PeerIdentity& peer, const Hello& hello) {
  const std::lock_guard lock(mutex_);
  const Role role = RoleOf(peer, access_.get());
  if (role == Role::kNone) {
    return {.status = WelcomeStatus::kNotAdmitted,
            .why = peer.transport == "shm" ? "no rule for this user, and no key; see kvd's --keys"
                                           : "this kvd wants a key; give a key file"};
  }
  Verdict verdict;
  if (live_.size() - administrators_ >= options_.sessions_max) {
    if (!IsAdministrator(peer, hello) || administrators_ >= kAdministrationSessions) {
      return {.status = WelcomeStatus::kFull,
              .why = absl::StrCat("--max_clients=", options_.sessions_max, " reached; raise it")};
    }
    verdict.kept_for_administration = true;
  }
  if (!IsOwner(peer)) {
    if (std::optional<std::string> why = limits_.Enter(AddressLimits::AddressOf(peer))) {
      return {.status = WelcomeStatus::kFull, .why = *std::move(why)};
    }
  }
  verdict.facts = {.session_id = admitted_.fetch_add(1, std::memory_order_relaxed) + 1,
                   .client_id = hello.client_id,
                   .name = NameOf(hello),
                   .peer = peer,
                   .role = role,
                   .since_unix_us = clock_.NowUnixUs(),
                   .credits = std::clamp<uint32_t>(hello.credits_wanted, 1, options_.credits_max)};
  ForgetAbsent(clock_.NowMonotonicNs());
  live_.emplace(
      verdict.facts.session_id,
      Live{.facts = verdict.facts, .kept_for_administration = verdict.kept_for_administration});
  administrators_ += verdict.kept_for_administration ? 1 : 0;
  const auto [client, first] = clients_.try_emplace(hello.client_id);
  ++client->second.sessions;
  verdict.replies_kept = !first;
  return verdict;
}

Welcome AdmissionPolicy::Admit(const PeerIdentity& peer, const Hello& hello) {
  if (shutting_down_.load(std::memory_order_relaxed)) {
    return Refuse(peer, hello, WelcomeStatus::kShuttingDown, "kvd is shutting down");
  }
  const Verdict verdict = Judge(peer, hello);
  if (verdict.status != WelcomeStatus::kAdmitted) {
    return Refuse(peer, hello, verdict.status, verdict.why);
  }
  if (options_.audit != nullptr) options_.audit->Admitted(verdict.facts);
  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.status = static_cast<uint32_t>(WelcomeStatus::kAdmitted);
  welcome.feature_bits = (verdict.kept_for_administration ? kFeatureAdministration : 0) |
                         (hello.feature_bits & kFeatureCounts);
  welcome.incarnation = options_.geometry.incarnation;
  welcome.region_bytes = options_.geometry.region_bytes;
  welcome.bucket_bytes = options_.geometry.bucket_bytes;
  welcome.shard_count = options_.geometry.shard_count;
  welcome.directory_entries = options_.geometry.directory_entries;
  welcome.directory_offset = options_.geometry.directory_offset;
  welcome.session_id = verdict.facts.session_id;
  welcome.credits = verdict.facts.credits;
  welcome.frame_bytes = options_.frame_bytes;
  welcome.max_value_bytes = options_.max_value_bytes;
  welcome.server_unix_us = static_cast<uint64_t>(clock_.NowUnixUs());
  welcome.flags = (verdict.replies_kept ? kWelcomeRepliesKept : 0) |
                  (options_.wants_hits ? kWelcomeWantsHits : 0);
  welcome.role = static_cast<uint32_t>(verdict.facts.role);
  welcome.server_pid = static_cast<uint32_t>(getpid());
  return welcome;
}

void AdmissionPolicy::Attach(uint64_t session_id, std::shared_ptr<const SessionCounters> counters) {
  const std::lock_guard lock(mutex_);
  const auto session = live_.find(session_id);
  if (session != live_.end()) session->second.facts.counters = std::move(counters);
}

// Not to be missed, also where what goes is a session for which there was no memory.
void AdmissionPolicy::Gone(uint64_t session_id) {
  WithReserve([&] {
    SessionFacts facts;
    {
      const std::lock_guard lock(mutex_);
      const auto session = live_.find(session_id);
      KVD_CHECK(session != live_.end());
      administrators_ -= session->second.kept_for_administration ? 1 : 0;
      facts = std::move(session->second.facts);
      live_.erase(session);
      if (!IsOwner(facts.peer)) limits_.Leave(AddressLimits::AddressOf(facts.peer));
      Client& client = clients_.at(facts.client_id);
      if (--client.sessions == 0) {
        client.gone_ns = clock_.NowMonotonicNs();
        absent_.emplace_back(client.gone_ns, facts.client_id);
        ForgetAbsent(client.gone_ns);
      }
    }
    if (options_.audit != nullptr) options_.audit->Ended(facts);
  });
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

uint64_t AdmissionPolicy::sessions_over(std::string_view transport) const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(std::count_if(live_.begin(), live_.end(), [&](const auto& live) {
    return live.second.facts.peer.transport == transport;
  }));
}

}  // namespace kvd
