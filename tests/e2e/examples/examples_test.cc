// The programs of the documentation do what it says.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

// Runs the program that the environment names with one argument; its output, or a text about how it failed.
std::string Run(const char* program, const std::string& argument) {
  FILE* pipe = popen((std::string(std::getenv(program)) + " " + argument + " 2>&1").c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  const int status = pclose(pipe);
  return status == 0 ? output : "failed: " + output;
}

}  // namespace

TEST_CASE("Examples: hello stores a value and reads it back") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=16m"}));
  REQUIRE(Run("HELLO", kvd.target()) == "hello\n");
}

TEST_CASE("Examples: hello says what is wrong when there is no kvd") {
  REQUIRE(Run("HELLO", "shm:/nonexistent/kvd.sock").starts_with("failed: connect: "));
}

}  // namespace kvd::test
