// Which instructions callgrind counts: those of kvd, not those of the simulated network below it.
#pragma once

#include <valgrind/callgrind.h>

#include <cstddef>

namespace kvd::test {

// Counting is on between Begin and End, outside of every Uncounted. Without valgrind nothing
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

  class Uncounted {
   public:
    Uncounted() {
      interruptions_ += on_ ? 1 : 0;
      Toggle();
    }
    ~Uncounted() { Toggle(); }
    Uncounted(const Uncounted&) = delete;
    Uncounted& operator=(const Uncounted&) = delete;

   private:
    static void Toggle() {
      if (on_) CALLGRIND_TOGGLE_COLLECT;
    }
  };

 private:
  static inline bool on_ = false;
  static inline size_t interruptions_ = 0;
};

}  // namespace kvd::test
