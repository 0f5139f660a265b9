// The word in the superblock that tells readers on this host whether kvd lives: see
// common/layout/superblock.h.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd {

// A thread of its own that does nothing but own the word. Its death, with the process or without,
// sets kLifelineOwnerDied: the kernel walks the thread's list of robust futexes, of which this word
// is the only one.
class LifelineThread {
 public:
  // `word` lies in the region and outlives the thread. When this returns, the word is alive.
  // Errors: as the system calls give them; the word is then zero.
  static absl::StatusOr<std::unique_ptr<LifelineThread>> Start(uint32_t* word);

  // Sets the word to zero and ends the thread.
  ~LifelineThread();

  LifelineThread(const LifelineThread&) = delete;
  LifelineThread& operator=(const LifelineThread&) = delete;

 private:
  struct State;
  explicit LifelineThread(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace kvd
