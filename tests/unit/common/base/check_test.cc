// A check that holds costs nothing; one that does not ends the process and says where.
#include "common/base/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "common/base/unique_fd.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("KVD_CHECK: evaluates its condition once") {
  int evaluations = 0;
  KVD_CHECK(++evaluations == 1);
  CHECK(evaluations == 1);
}

TEST_CASE("KVD_CHECK: a broken invariant aborts with file and condition on stderr") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // not Catch2's handler
    dup2(write_end.get(), STDERR_FILENO);
    const int answer = 41;
    KVD_CHECK(answer == 42);
    _exit(0);
  }
  write_end.Reset();
  std::string output;
  char buffer[256];
  for (ssize_t count; (count = read(read_end.get(), buffer, sizeof(buffer))) > 0;) {
    output.append(buffer, static_cast<size_t>(count));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK_THAT(output, Catch::Matchers::Contains("check_test.cc:") &&
                         Catch::Matchers::Contains("check failed: answer == 42"));
}

}  // namespace
}  // namespace kvd
