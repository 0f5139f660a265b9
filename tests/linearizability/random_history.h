// Histories that are linearizable because they were made by carrying out operations one after the
// other, each at some instant of its interval.
#pragma once

#include <vector>

#include "common/base/random.h"
#include "tests/linearizability/model.h"
#include "tests/linearizability/operation.h"

namespace kvd::test {

struct RandomHistoryOptions {
  int clients = 4;
  int operations = 100;
  uint64_t keys = 1;
  int64_t duration_ns_max = 100;  // of an operation; the next one of a client follows within 20
  double unknown = 0;             // share of the operations whose reply is lost
  double failed = 0;              // share that fails without effect
  double expiring = 0;            // share of the PUTs with an expiry
  double versions_told = 1;       // share of the replies with a version
  bool joins = true;              // APPEND and PREPEND too
  Rules rules;
};

std::vector<Operation> MakeRandomHistory(Random& random, const RandomHistoryOptions& options);

}  // namespace kvd::test
