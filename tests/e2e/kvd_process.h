// A real kvd, started by a test and stopped with it.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/unique_fd.h"

namespace kvd::test {

// How a process ended and what it wrote.
struct Ended {
  int exit_code = -1;  // -1: by a signal
  int signal = 0;
  std::string out;
  std::string err;
};

class KvdProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;
    std::vector<std::string> environment;  // NAME=value, besides PATH
    rlim_t descriptors_max = 0;            // 0: as the test's own
    int error_fd = -1;                     // where its standard error goes; -1: to Ended::err
    int pending_signal = 0;                // not 0: one that has come before kvd can take any
  };

  // Starts kvd. Its working directory is the test's.
  explicit KvdProcess(const Options& options);
  explicit KvdProcess(std::vector<std::string> arguments)
      : KvdProcess(Options{std::move(arguments), {}, 0}) {}
  ~KvdProcess();  // kills it if it still runs
  KvdProcess(const KvdProcess&) = delete;
  KvdProcess& operator=(const KvdProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Waits until it is ready (as it tells systemd) or has ended; true: ready. Everything that it
  // said to systemd until then is in notifications().
  bool WaitReady();
  const std::string& notifications() const { return notifications_; }

  // Takes what it has told systemd since.
  void ReadNotifications();

  void Signal(int signal) const;

  // Waits for its end.
  Ended Wait();

 private:
  pid_t pid_ = -1;
  std::string notify_path_;
  UniqueFd notify_;
  UniqueFd out_;
  UniqueFd err_;
  std::string notifications_;
};

// Runs kvd to its end.
Ended RunKvd(const std::vector<std::string>& arguments);

}  // namespace kvd::test
