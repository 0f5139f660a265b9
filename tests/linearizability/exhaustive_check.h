// The definition of linearizability, tried out on every order: slow, and too simple to be wrong.
#pragma once

#include <vector>

#include "tests/linearizability/model.h"
#include "tests/linearizability/operation.h"

namespace kvd::test {

// `operations` are all on one key, and few.
bool IsLinearizableByTrial(const std::vector<Operation>& operations, const Rules& rules);

}  // namespace kvd::test
