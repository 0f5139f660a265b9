#include "tests/linearizability/run_recorder.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/support/test.h"

namespace kvd::test {

Recorded RunRecorder(const char* recorder, const char* kvd, const std::string& flags) {
  const std::string command = std::string(std::getenv(recorder)) + " --kvd=" + std::getenv(kvd) +
                              " --seed=" + std::to_string(Seed()) + " " + flags + " 2>&1";
  Recorded recorded;
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  char line[1024];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    recorded.output += line;
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name >> value) recorded.counts[name] += value;
  }
  const int status = pclose(pipe);
  recorded.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::printf("%s\n%s", command.c_str(), recorded.output.c_str());
  return recorded;
}

}  // namespace kvd::test
