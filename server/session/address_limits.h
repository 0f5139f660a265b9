// How much of the server one address may have: sessions at once, and handshakes a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/admission/admission.h"

namespace kvd {

// One thread at a time.
class AddressLimits {
 public:
  struct Options {
    uint32_t sessions_max = 0;           // 0: no limit, as in the next
    uint32_t handshakes_per_second = 0;  // and as many at once after a quiet second
  };

  // Addresses that are remembered though they have no session, at most; beyond, those that have
  // their whole allowance are forgotten, and where none has, nobody new gets in.
  static constexpr size_t kAbsentMax = 65536;

  explicit AddressLimits(const Options& options) : options_(options) {}

  // A handshake begins. nullopt: it may; otherwise why not, in a few words.
  std::optional<std::string> Begin(const std::string& address, int64_t now_ns);
  // A session is wanted; if it may be, it counts until Leave.
  std::optional<std::string> Enter(const std::string& address);
  void Leave(const std::string& address);

  // Of a peer: its host without the port, or over shared memory its user.
  static std::string AddressOf(const PeerIdentity& peer);

  size_t remembered() const { return addresses_.size(); }

 private:
  struct Address {
    uint32_t sessions = 0;
    double handshakes_left = 0;
    int64_t counted_ns = 0;
  };

  void Refill(Address& address, int64_t now_ns) const;
  bool MakeRoom(int64_t now_ns);

  const Options options_;
  std::unordered_map<std::string, Address> addresses_;
};

}  // namespace kvd
