// Whether the operations of one key can be put into an order that respects the times at which they
// were invoked and returned, and in which each returns what it has returned.
//
// Depth first over the orders (Wing and Gong, "Testing and verifying concurrent objects", 1993),
// remembering which sets of operations have led to which state (Lowe, "Testing for
// linearizability", 2017). Three things keep the tree narrow:
//   - an operation that only reads and fits the state is taken at once: whatever order there is
//     without it, there is one with it here;
//   - writes of known version are taken in the order of their versions;
//   - what may have happened but need not (operations of unknown outcome, an item's vanishing) is
//     tried only when nothing else goes on, and only if it matters to the operation that follows.
// A set of operations is remembered as 128 bits of hash: the chance that two sets of one search are
// taken for the same is below 1e-20.
#pragma once

#include <cstdint>

#include "tests/linearizability/key_history.h"
#include "tests/linearizability/model.h"

namespace kvd::test {

enum class Verdict : uint8_t {
  kLinearizable,
  kViolation,
  kUndecided,  // the bound on the search was reached: nothing is known
};

struct SearchResult {
  Verdict verdict = Verdict::kLinearizable;
  uint64_t steps = 0;  // tried operations
  // The order that got furthest ended because this one of KeyHistory::required found no place.
  uint32_t stuck_at = 0;
};

SearchResult Search(const KeyHistory& history, const Rules& rules, uint64_t steps_max);

}  // namespace kvd::test
