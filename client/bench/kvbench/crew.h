// The clients of a run as threads or processes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/bench/kvbench/shared_run.h"
#include "common/base/mapped_memory.h"

namespace kvd::bench {

class Crew {
 public:
  struct Options {
    size_t clients = 1;
    bool processes = false;
  };

  // What a client does; `index` is its number.
  using Body = std::function<void(size_t index, RunControl& control, ClientSlot& slot)>;

  // Runs `body` once for each client. Errors: memory, threads or processes could not be had; none
  // is left running then.
  static absl::StatusOr<Crew> Start(const Options& options, const Body& body);

  Crew(Crew&&) = default;
  Crew& operator=(Crew&&) = delete;
  // Ends the run and waits for all clients.
  ~Crew();

  RunControl& control() const;
  ClientSlot& slot(size_t index) const;
  size_t size() const { return clients_; }

  // A client whose process has ended before its time is marked as failed.
  void NoticeDead();

 private:
  Crew(MappedMemory memory, size_t clients) : memory_(std::move(memory)), clients_(clients) {}

  MappedMemory memory_;  // shared: the control block, then a slot for each client
  size_t clients_;
  std::vector<std::thread> threads_;
  std::vector<pid_t> processes_;  // 0: has been waited for
};

}  // namespace kvd::bench
