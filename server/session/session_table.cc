#include "server/session/session_table.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kvd {
namespace {

// The name is the client's own choice: only what is harmless in a log gets there.
std::string ClientNameOf(const ServerEvent& opened) {
  std::string name;
  if (opened.hello != nullptr) {
    const char* from = opened.hello->name;
    name.assign(from, strnlen(from, sizeof(opened.hello->name)));
    for (char& c : name) {
      if (std::isgraph(static_cast<unsigned char>(c)) == 0) c = '?';
    }
  }
  return name;
}

std::string NameOf(const ServerSession& session, const ServerEvent& opened) {
  std::string name = session.client_name.empty() ? "client" : session.client_name;
  if (opened.peer != nullptr && opened.peer->pid != 0) {
    absl::StrAppend(&name, " (pid ", opened.peer->pid, ", uid ", opened.peer->uid, ")");
  }
  return name;
}

}  // namespace

void SessionTable::Open(ChannelId channel, const ServerEvent& opened, int64_t now_ns) {
  auto session = std::make_shared<ServerSession>();
  session->session_id = opened.session_id;
  if (opened.hello != nullptr) session->client_id = opened.hello->client_id;
  session->role = opened.role;
  session->counters.Begin(now_ns);
  session->client_name = ClientNameOf(opened);
  session->name = NameOf(*session, opened);
  const size_t sessions = sessions_.size() + 1;
  if (holders_.capacity() < sessions) holders_.reserve(2 * sessions);
  sessions_.emplace(channel, std::move(session));
}

std::shared_ptr<const SessionCounters> SessionTable::CountersOf(ChannelId channel) const {
  const std::shared_ptr<ServerSession>& session = sessions_.at(channel);
  return {session, &session->counters};
}

ServerSession* SessionTable::Search(ChannelId channel) {
  const auto at = sessions_.find(channel);
  if (at == sessions_.end()) return nullptr;
  found_channel_ = channel;
  return found_ = at->second.get();
}

std::optional<HeldItem> SessionTable::Close(ChannelId channel) {
  std::optional<HeldItem> held = TakeHeld(channel);
  if (found_channel_ == channel) found_ = nullptr;
  sessions_.erase(channel);
  return held;
}

std::optional<HeldItem> SessionTable::Hold(ChannelId channel, uint32_t shard, Slot slot,
                                           int64_t now_ns) {
  std::optional<HeldItem> before = TakeHeld(channel);
  const int64_t ends_ns = now_ns + LeaseNs(slot);
  const auto later = std::upper_bound(
      holders_.begin(), holders_.end(), ends_ns,
      [this](int64_t ends, ChannelId holder) { return ends < Find(holder)->held->lease_ends_ns; });
  holders_.insert(later, channel);
  Find(channel)->held = HeldItem{shard, slot, ends_ns};
  return before;
}

int64_t SessionTable::LeaseNs(Slot slot) {
  constexpr uint64_t kBytesPerSecond = uint64_t{16} << 20;
  return kLeaseNs + static_cast<int64_t>(ItemBytesOf(slot) / kBytesPerSecond) * 1'000'000'000;
}

std::optional<HeldItem> SessionTable::TakeHeld(ChannelId channel) {
  ServerSession* session = Find(channel);
  if (session == nullptr || !session->held.has_value()) return std::nullopt;
  std::erase(holders_, channel);
  return std::exchange(session->held, std::nullopt);
}

std::vector<HeldItem> SessionTable::TakeExpired(int64_t now_ns) {
  std::vector<HeldItem> expired;
  while (!holders_.empty() && Find(holders_.front())->held->lease_ends_ns <= now_ns) {
    expired.push_back(*TakeHeld(holders_.front()));
  }
  return expired;
}

std::optional<int64_t> SessionTable::next_lease_end_ns() const {
  if (holders_.empty()) return std::nullopt;
  return sessions_.find(holders_.front())->second->held->lease_ends_ns;
}

}  // namespace kvd
