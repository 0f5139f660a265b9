// A kvd that serves an RDMA device, and clients from the other side of the wire.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/support/kvd_process.h"

namespace kvd::test {

// kvd listens on the server's device; skips the test case where there is none.
struct RdmaRig {
  RdmaRig();

  void Start();

  std::string target() const { return "rdma:" + address + ":7711"; }

  // From the clients' side in any case: where the link is down, this kernel would connect its two
  // addresses by itself.
  std::unique_ptr<Client> ConnectOverWire() const;

  // Tries again until kvd listens for RDMA, to which it comes after its socket.
  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) const;

  RdmaEnvironment environment;
  std::string address;
  std::vector<std::string> flags;
  bool by_tcp = false;  // connections over the wire; kvd's own flag is apart
  KvdProcess kvd;
};

}  // namespace kvd::test
