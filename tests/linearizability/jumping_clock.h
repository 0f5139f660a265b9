// Unix time that jumps, for kvd and for its clients, each by itself: what people, NTP and virtual
// machines do to clocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "common/base/random.h"

namespace kvd::test {

class JumpingClock {
 public:
  // Runs this program anew with `library` (//tests/linearizability:clock_jump) preloaded, unless it
  // is already: then this process and those that it forks are the clients. Exits with 1 where that
  // cannot be.
  static void TakePartIn(const std::string& library, char** argv);

  // After TakePartIn. `library` is preloaded to kvd.
  static std::unique_ptr<JumpingClock> Create(const std::string& library);
  ~JumpingClock();

  // What is started between these two is kvd.
  void BeginOfKvd() const;
  void EndOfKvd() const;

  // Kvd's time, the clients' or both.
  void Jump(Random& random);

 private:
  JumpingClock() = default;

  std::string library_;
  std::string clients_path_;
  std::string kvd_path_;
  std::atomic<int64_t>* clients_ = nullptr;  // ns that are added to Unix time
  std::atomic<int64_t>* kvd_ = nullptr;
};

}  // namespace kvd::test
