// Who decides which clients become sessions, and what it is told of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/admission/access_rules.h"
#include "common/layout/hello.h"

namespace kvd {

// What is known of a client besides what it says of itself.
struct PeerIdentity {
  std::string transport = {};  // "shm", "rdma"
  std::string address = {};    // socket path or host:port
  pid_t pid = 0;               // shared memory only, from the kernel; otherwise 0
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};                  // with gid among them
  std::shared_ptr<const AccessKey> key = nullptr;  // that it has proved to have; null: none
};

// Called from transport threads; thread-safe, and never blocks for long.
class Admission {
 public:
  virtual ~Admission() = default;

  // A client has connected, or, over RDMA, said its first word. Not nullopt: it is refused as full,
  // for this reason, before anything else is done for it.
  virtual std::optional<std::string> TurnAway(const PeerIdentity& /*peer*/) { return std::nullopt; }

  // Whether the client is to prove that it has a key before Admit is asked.
  virtual bool WantsProof(const PeerIdentity& /*peer*/, const Hello& /*hello*/) { return false; }
  // Null: there is no key of that name.
  virtual std::shared_ptr<const AccessKey> FindKey(std::string_view /*name*/) { return nullptr; }

  // The answer to a Hello that ParseHello accepted. If its status is kAdmitted, the transport fills
  // in what is its own (region_address, region_key) and calls Gone exactly once for that session_id
  // when the channel ends, also when it never reached a poller.
  virtual Welcome Admit(const PeerIdentity& peer, const Hello& hello) = 0;
  virtual void Gone(uint64_t session_id) = 0;

  // A client was refused by somebody else than Admit, before or after it was asked.
  virtual void NoteRefusal(const PeerIdentity& /*peer*/, const Hello& /*hello*/,
                           std::string_view /*why*/) {
    CountRefusal();
  }
  // The same where nothing is known of the client.
  virtual void CountRefusal() {}
};

}  // namespace kvd
