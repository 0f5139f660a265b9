// The operations of one key, made ready for the search: what needs no search is judged, and what
// the answers tell about lost replies is filled in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/linearizability/operation.h"

namespace kvd::test {

struct KeyHistory {
  // Must take effect between invocation and return. Sorted by invocation.
  std::vector<Operation> required;
  // May take effect after their invocation, or not at all. Sorted by invocation.
  std::vector<Operation> optional;
  // For each optional operation the last one before it of which it is a copy in all that matters,
  // or -1: it need not be tried while that one has not taken effect.
  std::vector<int> same_before;
  // Indexes of `required` that write an item of known version, by version: the order in which they
  // took effect.
  std::vector<uint32_t> version_order;
  // Not empty: no order of the operations explains this.
  std::string violation;
};

// Operations of kUnknown outcome that read are left out, as are those of kFailed.
//
// A write whose reply was lost and whose value was read has taken effect before that read returned,
// with the version that came with it (unless there was a kTouch), so it becomes required. That
// holds where each value names its write, that is, in histories without kAppend and kPrepend.
KeyHistory PrepareKey(std::vector<Operation> operations);

}  // namespace kvd::test
