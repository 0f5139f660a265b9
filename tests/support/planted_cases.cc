// One test case for each way to end, for main_test.sh: what the main function must report of it.
#include <csignal>
#include <iostream>

#include "tests/support/test.h"

namespace {

void SkipDeepInside() { KVD_SKIP("no such device"); }

TEST_CASE("passes") { CHECK(true); }

TEST_CASE("fails") { CHECK(false); }

TEST_CASE("throws") { throw 1; }

TEST_CASE("skips") {
  SECTION("in a section") {
    SkipDeepInside();
    CHECK(false);
  }
}

TEST_CASE("fails before it skips") {
  CHECK(false);
  KVD_SKIP("too late");
}

TEST_CASE("prints the seed") { std::cout << "seed is " << kvd::test::Seed() << std::endl; }

TEST_CASE("aborts") { std::raise(SIGABRT); }

}  // namespace
