// A kvd and the way to it: over shared memory, or, with KVD_OVER=rdma in the environment, by RDMA.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "tests/support/kvd_process.h"

namespace kvd::test {

class KvdUnderTest {
 public:
  // Starts kvd with `flags` besides those of the transport.
  explicit KvdUnderTest(std::vector<std::string> flags);

  // Whether it will be by RDMA.
  static bool IsOverRdma();

  const std::string& target() const { return target_; }
  bool over_rdma() const { return over_rdma_; }
  KvdProcess& process() { return process_; }

  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) const;

  // Breaks the sessions of this process's clients; returns how many. Over RDMA nothing in a process
  // can do that: 0, and can_break() is false.
  int BreakSessions() const;
  bool can_break() const { return !over_rdma_; }

 private:
  bool over_rdma_;
  KvdProcess process_;
  std::string target_;
};

}  // namespace kvd::test
