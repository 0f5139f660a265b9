// Runs history_recorder, or another program that prints what it counted in the same way, as a test
// does.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kvd::test {

struct Recorded {
  int exit_status = -1;                    // the program says what it means
  std::map<std::string, uint64_t> counts;  // of lines "NAME COUNT", summed up
  std::string output;
};

// `recorder` and `kvd` name environment variables that hold the paths of the binaries.
Recorded RunRecorder(const char* recorder, const char* kvd, const std::string& flags);

}  // namespace kvd::test
