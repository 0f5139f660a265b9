// A real kvd process for tests: started on a socket of its own, and ended with the object.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/temp_dir.h"

namespace kvd::test {

class KvdProcess {
 public:
  KvdProcess() = default;
  ~KvdProcess();  // kill -9, if it still runs
  KvdProcess(const KvdProcess&) = delete;
  KvdProcess& operator=(const KvdProcess&) = delete;

  // Runs `binary` with --shm on a fresh socket and `flags`; returns once a client can connect. The log goes to
  // log_path(). Internal with the end of its log if it exits, DeadlineExceeded if it does not serve within 30 s. May be
  // called again after Kill or Terminate: same socket.
  absl::Status Start(const std::string& binary, const std::vector<std::string>& flags);

  void Kill();            // SIGKILL, and waits
  int Terminate();        // SIGTERM, waits; its exit status, or 128 + signal
  void Signal(int number) const;
  void Stop() const;      // SIGSTOP, and waits until every thread has stopped
  void Continue() const;  // SIGCONT

  pid_t pid() const { return pid_; }
  std::string socket_path() const { return directory_.Join("kvd.sock"); }
  std::string target() const { return "shm:" + socket_path(); }
  std::string log_path() const { return directory_.Join("kvd.log"); }
  std::string Log() const;

 private:
  int Reap();

  TempDir directory_;
  pid_t pid_ = 0;
};

}  // namespace kvd::test
