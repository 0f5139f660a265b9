// Where a benchmark ran, for the head of its report.
#pragma once

#include <cstdint>
#include <string>

namespace kvd::bench {

struct Machine {
  std::string cpu;     // "AMD EPYC"
  long cores = 0;      // that are online
  std::string kernel;  // "Linux 6.1.0"
  long page_bytes = 0;
  double clock_ns = 0;  // what a look at the clock costs; each time that is measured holds one
};

Machine ThisMachine();

}  // namespace kvd::bench
