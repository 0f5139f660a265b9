// Which RDMA devices a suite may use: those of the guest, or this machine's own. README.md says how
// the variables are set.
#pragma once

#include <string>
#include <vector>

namespace kvd::test {

// One side of a connection. With two devices, a suite's server uses the last, its clients the
// first; with one they share it.
struct RdmaSide {
  std::string device;        // as ibv_devinfo names it
  std::string address;       // IPv4; empty if unknown
  std::string ipv6_address;  // empty if unknown
  std::string netdev;        // empty if unknown
};

struct RdmaEnvironment {
  std::vector<RdmaSide> sides;  // empty: no devices, so the suite's cases skip
  // Links, delays and limits of this machine may be changed, since it is a guest that goes away.
  bool disposable = false;
  // In the guest, the program that takes links down and up again; see network.sh.
  std::string network_program;

  const RdmaSide& client() const { return sides.front(); }
  const RdmaSide& server() const { return sides.back(); }
};

// What the environment's variables say. Blocks not; may be called from any thread.
RdmaEnvironment FindRdmaEnvironment();

}  // namespace kvd::test
