// The main function of all tests, compiled once: seed, skipped test cases, and one line per test
// case for tests/run.sh (its header comment defines them).
#define CATCH_CONFIG_RUNNER
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

// Reason for which the running test case has been skipped.
std::optional<std::string>& SkipReason() {
  static std::optional<std::string> reason;
  return reason;
}

const char* Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

// Tells tests/run.sh which test case begins, so that one that hangs or crashes is known, and how it
// ended. Only under Bazel, which sets TEST_TARGET: a person who starts the binary by hand reads
// Catch2's own report.
class CaseLines : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    TestEventListenerBase::testCaseStarting(info);
    SkipReason().reset();
    if (Environment("TEST_TARGET") != nullptr) {
      std::cout << "\nKVD_CASE begins " << info.name << std::endl;
    }
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    TestEventListenerBase::testCaseEnded(stats);
    const std::string& name = stats.testInfo.name;
    const bool failed = stats.totals.testCases.failed > 0;
    if (!failed && SkipReason().has_value()) {
      std::cout << "\nKVD_CASE skipped " << name << ": " << *SkipReason() << std::endl;
    } else if (Environment("TEST_TARGET") != nullptr) {
      std::cout << "\nKVD_CASE " << (failed ? "failed " : "passed ") << name << std::endl;
    }
  }
};

CATCH_REGISTER_LISTENER(CaseLines)

// A seed from the environment, or a random one. Exits with 2 when the environment's is no number.
uint32_t InitialSeed() {
  const char* text = Environment("KVD_TEST_SEED");
  if (text == nullptr) return std::random_device{}();
  char* end = nullptr;
  const unsigned long seed = std::strtoul(text, &end, 0);
  if (*end != '\0' || seed > UINT32_MAX) {
    std::cerr << "KVD_TEST_SEED=" << text << " is not a number of 32 bits\n";
    std::exit(2);
  }
  return static_cast<uint32_t>(seed);
}

}  // namespace

uint32_t Seed() { return Catch::rngSeed(); }

void SkipTestCase(const std::string& reason) {
  SkipReason() = reason;
  // Catch2 2.13 leaves a test case on this exception without recording a failure.
  throw Catch::TestFailureException();
}

}  // namespace kvd::test

int main(int argc, char** argv) {
  Catch::Session session;
  session.configData().rngSeed = kvd::test::InitialSeed();
  session.configData().warnings = Catch::WarnAbout::NoTests;
  if (const char* filter = kvd::test::Environment("TESTBRIDGE_TEST_ONLY"); filter != nullptr) {
    session.configData().testsOrTags.emplace_back(filter);  // bazel test --test_filter=...
  }
  if (const int error = session.applyCommandLine(argc, argv); error != 0) return error;
  if (!session.configData().listTests && !session.configData().showHelp) {
    std::cout << "KVD_TEST_SEED=" << session.configData().rngSeed << std::endl;
  }
  const int failures = session.run();
  return failures == 0 ? 0 : 1;
}
