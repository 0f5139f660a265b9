// What kvd says while it waits for its memory, which takes the kernel a while when there is much.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/clock.h"

namespace kvd {

class MemoryProgress {
 public:
  using Line = std::function<void(const std::string&)>;

  // `log` gets a line for people now if `memory_bytes` is much, and one every few seconds at most;
  // `status` one at every few percent. `clock` must outlive this object.
  MemoryProgress(uint64_t memory_bytes, const Clock& clock, Line log, Line status);

  // Of `total_bytes`, `done_bytes` have come. May begin again from less.
  void Update(uint64_t done_bytes, uint64_t total_bytes);

 private:
  const Clock& clock_;
  const Line log_;
  const Line status_;
  int64_t logged_ns_;
  uint64_t told_percent_ = 0;
};

}  // namespace kvd
