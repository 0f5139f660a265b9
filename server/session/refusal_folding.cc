#include "server/session/refusal_folding.h"

#include <utility>

#include "server/session/address_limits.h"

namespace kvd {

bool RefusalFolding::Note(const PeerIdentity& peer, std::string_view why, int64_t now_ns) {
  std::string address = AddressLimits::AddressOf(peer);
  auto window = windows_.find(address);
  if (window == windows_.end() && windows_.size() >= kAddressesMax) {
    address.clear();
    window = windows_.find(address);
  }
  if (window == windows_.end()) {
    const More more{.peer = peer, .many_addresses = address.empty()};
    windows_.emplace(std::move(address), Window{now_ns, more});
    return true;
  }
  ++window->second.more.count;
  window->second.more.why = why;
  return false;
}

std::vector<RefusalFolding::More> RefusalFolding::Take(int64_t now_ns, bool all) {
  std::vector<More> taken;
  for (auto at = windows_.begin(); at != windows_.end();) {
    Window& window = at->second;
    if (!all && now_ns - window.begins_ns < kWindowNs) {
      ++at;
      continue;
    }
    if (window.more.count != 0) {
      window.more.ns = now_ns - window.begins_ns;
      taken.push_back(std::move(window.more));
    }
    at = windows_.erase(at);
  }
  return taken;
}

}  // namespace kvd
