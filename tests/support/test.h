// What every unit test includes: Catch2, the seed of this run, and a way to say "could not run
// here".
//
// A test target depends on //tests/support:catch2_main, which brings this header and the main
// function. Catch2's assertions are not thread-safe: collect in threads, assert in the test's own.
// glog has a CHECK too: a test that needs both includes this header last.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

namespace kvd::test {

// The seed of this run: environment KVD_TEST_SEED, or --rng-seed, or else a random one. The main
// function prints it. Every random choice of a test derives from it.
uint32_t Seed();

// Ends the running test case, which then counts as skipped, not as passed. Call it through
// KVD_SKIP, on the test's own thread.
[[noreturn]] void SkipTestCase(const std::string& reason);

}  // namespace kvd::test

// KVD_SKIP("no RDMA device"): leaves the test case here; tests/run.sh shows the reason.
#define KVD_SKIP(reason) ::kvd::test::SkipTestCase(reason)
