// Which instructions callgrind counts: those of kvd, not those of the simulated network below it.
#pragma once

#include <valgrind/callgrind.h>

#include <cstddef>
#include <utility>

namespace kvd::test {

// Counting is on between Begin and End, outside of every Uncounted(). Without valgrind nothing
// happens.
class Counting {
 public:
  static void Begin() {
    on_ = true;
    CALLGRIND_TOGGLE_COLLECT;
  }
  static void End() {
    CALLGRIND_TOGGLE_COLLECT;
    on_ = false;
  }

  // How often something uncounted was met while counting: each costs some counted instructions.
  static size_t interruptions() { return interruptions_; }

  // Calls `run` without counting it. It is kept apart from what calls this: inlined there it would
  // have registers saved, and these instructions be counted.
  template <typename Run>
  static auto Uncounted(const Run& run) {
    interruptions_ += on_ ? 1 : 0;
    const Paused paused;
    return Apart(run);
  }

 private:
  // Off for as long as it lives; one inside another changes nothing.
  class Paused {
   public:
    Paused() : was_on_(std::exchange(on_, false)) {
      if (was_on_) CALLGRIND_TOGGLE_COLLECT;
    }
    ~Paused() {
      if (was_on_) CALLGRIND_TOGGLE_COLLECT;
      on_ = was_on_;
    }
    Paused(const Paused&) = delete;
    Paused& operator=(const Paused&) = delete;

   private:
    const bool was_on_;
  };

  template <typename Run>
  [[gnu::noinline]] static auto Apart(const Run& run) {
    return run();
  }

  static inline bool on_ = false;
  static inline size_t interruptions_ = 0;
};

}  // namespace kvd::test
