// The doctor's checks of a server: values of every size are put, read back one-sidedly and compared
// byte by byte, and how long that took is set against what the way there takes in the same moment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/cli/doctor_report.h"
#include "client/cli/store.h"
#include "common/base/clock.h"
#include "common/base/units.h"

namespace kvd::cli {

// An operation whose median is so many times what the way takes by itself is worth a warning. A GET
// of a value outside its bucket is two READs one after the other; the rest is for busy machines.
inline constexpr double kTimesTheFloorMax = 4;

// Over shared memory there is no way: an idle machine is done sooner, as a rule of thumb. The first
// request after a pause wakes a poller.
constexpr double RuleOfThumbUs(bool put, uint64_t bytes) {
  return put ? 500 + static_cast<double>(bytes) / 200 : 20 + static_cast<double>(bytes) / 500;
}

// A kvd that evicts makes room for longer values by deleting items of its users, whose cache a
// check must not empty.
inline constexpr uint64_t kValueBytesWithoutHarm = 8 * kKiB;

struct ServerCheckOptions {
  // Random: keys are this prefix and a size. Nobody else's keys begin with it.
  std::string key_prefix;
  uint64_t seed = 0;          // of the values
  bool large_values = false;  // over kValueBytesWithoutHarm also where the server evicts
  std::function<bool()> interrupted;
};

// Adds a line for admission, for RDMA one for the floor, for a kvd that evicts one for what
// that costs, and one a size and kind of operation.
// Leaves no key behind unless the server fails in between, which is said. Stops at the first error
// after which no other check makes sense, or when interrupted.
void CheckServer(KeyValueStore& store, const Clock& clock, const ServerCheckOptions& options,
                 DoctorReport& report);

}  // namespace kvd::cli
