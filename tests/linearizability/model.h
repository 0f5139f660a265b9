// What one key of kvd does when nothing happens at the same time: the specification that histories
// are held against.
#pragma once

#include <cstdint>

#include "tests/linearizability/operation.h"

namespace kvd::test {

// What else may happen to items in a history besides the operations in it.
struct Rules {
  bool eviction = false;  // any item may vanish at any moment
  // An item may vanish from this long before its expiry, and is seen by nobody from this long
  // after.
  int64_t expiry_error_ns = 0;
  // Each reader judges expiry by its own idea of the time: within the error it may see the item or
  // not, whatever others, the server among them, have found before.
  bool readers_differ = false;
};

struct KeyState {
  bool present = false;
  // False after an operation whose reply was lost: then the item's version is above `version`.
  bool version_known = true;
  Value value;
  // Of the last write, also of an item that is gone: versions grow over the life of a key.
  uint64_t version = 0;
  int64_t expiry_ns = kNever;
  // Not present any more for the server, but readers may see it until its expiry and the error.
  bool lingers = false;

  bool operator==(const KeyState&) const = default;
};

// Whether `operation`, executed at `now_ns` on `state`, returns what it has returned; the state
// after it is in `after`. One of unknown outcome is legal here if it changes something.
bool Step(const KeyState& state, const Operation& operation, const Rules& rules, int64_t now_ns,
          KeyState& after);

// The moment from which the item may vanish by itself; kNever if it does not, or is not there.
int64_t MayVanishFromNs(const KeyState& state, const Rules& rules);

// The state after the item has vanished by itself, not later than `by_ns`.
KeyState VanishedBy(int64_t by_ns, const KeyState& state, const Rules& rules);

}  // namespace kvd::test
