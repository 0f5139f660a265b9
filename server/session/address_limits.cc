#include "server/session/address_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kvd {

std::string AddressLimits::AddressOf(const PeerIdentity& peer) {
  if (peer.transport == "shm") return absl::StrCat("uid:", peer.uid);
  return peer.address.substr(0, peer.address.rfind(':'));
}

// A bucket of tokens: what is not used within a second is lost.
void AddressLimits::Refill(Address& address, int64_t now_ns) const {
  const double most = options_.handshakes_per_second;
  const double more = static_cast<double>(now_ns - address.counted_ns) * 1e-9 * most;
  address.handshakes_left = std::min(most, address.handshakes_left + std::max(more, 0.0));
  address.counted_ns = now_ns;
}

bool AddressLimits::MakeRoom(int64_t now_ns) {
  for (auto at = addresses_.begin(); at != addresses_.end();) {
    Refill(at->second, now_ns);
    const bool whole = at->second.handshakes_left >= options_.handshakes_per_second;
    at = at->second.sessions == 0 && whole ? addresses_.erase(at) : std::next(at);
  }
  return addresses_.size() < kAbsentMax;
}

std::optional<std::string> AddressLimits::Begin(const std::string& address, int64_t now_ns) {
  if (options_.handshakes_per_second == 0) return std::nullopt;
  auto known = addresses_.find(address);
  if (known == addresses_.end()) {
    if (addresses_.size() >= kAbsentMax && !MakeRoom(now_ns)) {
      return "handshakes from too many addresses at once";
    }
    known = addresses_.emplace(address, Address{}).first;
    known->second.handshakes_left = options_.handshakes_per_second;
    known->second.counted_ns = now_ns;
  }
  Refill(known->second, now_ns);
  if (known->second.handshakes_left < 1) {
    return absl::StrCat("over --handshakes_per_second=", options_.handshakes_per_second);
  }
  known->second.handshakes_left -= 1;
  return std::nullopt;
}

std::optional<std::string> AddressLimits::Enter(const std::string& address) {
  if (options_.sessions_max == 0) return std::nullopt;
  Address& entry = addresses_[address];
  if (entry.sessions >= options_.sessions_max) {
    return absl::StrCat("--max_clients_per_address=", options_.sessions_max, " reached");
  }
  ++entry.sessions;
  return std::nullopt;
}

void AddressLimits::Leave(const std::string& address) {
  if (options_.sessions_max == 0) return;
  const auto at = addresses_.find(address);
  if (at == addresses_.end() || at->second.sessions == 0) return;
  // Where handshakes are counted, what is left of them is remembered; elsewhere there is nothing
  // to.
  if (--at->second.sessions == 0 && options_.handshakes_per_second == 0) addresses_.erase(at);
}

}  // namespace kvd
