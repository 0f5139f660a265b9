// Which instructions callgrind counts: those of kvd, not those of the simulated network below it.
#pragma once

#include <valgrind/callgrind.h>

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

  class Uncounted {
   public:
    Uncounted() { Toggle(); }
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
};

}  // namespace kvd::test
