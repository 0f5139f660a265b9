// This test program once more, as a server or client in a process of its own that can be stopped
// and killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "common/base/unique_fd.h"

namespace kvd::test {

class VerbsPeer {
 public:
  // A server with an echoing poller on the environment's server side; port() is where.
  static VerbsPeer Server() { return VerbsPeer("verbs peer: server", 0); }
  // A client of that port which is admitted, gets one reply, and then waits for another that nobody
  // asked for.
  static VerbsPeer Client(uint16_t port) { return VerbsPeer("verbs peer: client", port); }
  ~VerbsPeer();
  VerbsPeer(const VerbsPeer&) = delete;
  VerbsPeer& operator=(const VerbsPeer&) = delete;

  uint16_t port() const { return port_; }
  void Stop();  // and waits until it has stopped
  void Continue();
  void Kill();  // -9, and waits until it has gone

 private:
  VerbsPeer(const std::string& test_case, uint16_t port);

  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

}  // namespace kvd::test
