// Refusals as the audit log has them: the first of an address, and then a count, so that whoever is
// turned away cannot fill a disk by coming again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/admission/admission.h"

namespace kvd {

// One thread at a time.
class RefusalFolding {
 public:
  // From the first refusal of an address on, further ones are counted for this long.
  static constexpr int64_t kWindowNs = 1'000'000'000;
  // Addresses that are told apart at once; beyond, those that come are counted together.
  static constexpr size_t kAddressesMax = 256;

  // Refusals that were counted.
  struct More {
    PeerIdentity peer = {};       // the first of them: transport, address and user
    bool many_addresses = false;  // of whom there are more
    uint64_t count = 0;
    std::string why = {};  // the last of them
    int64_t ns = 0;        // from the first refusal, which is not among them, until now
  };

  // A peer was refused. True: it is the first of its address, so a line of its own is due.
  bool Note(const PeerIdentity& peer, std::string_view why, int64_t now_ns);

  // What was counted for kWindowNs or longer; each is given out once.
  std::vector<More> TakeDue(int64_t now_ns) { return Take(now_ns, false); }
  // And what was not.
  std::vector<More> TakeAll(int64_t now_ns) { return Take(now_ns, true); }

  size_t remembered() const { return windows_.size(); }

 private:
  struct Window {
    int64_t begins_ns = 0;
    More more;
  };

  std::vector<More> Take(int64_t now_ns, bool all);

  std::unordered_map<std::string, Window> windows_;  // by address; "": all that find no room
};

}  // namespace kvd
