// KVD_CHECK: our own invariants, tested in every build. Never for bytes from outside.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace kvd::internal {

[[noreturn, gnu::cold, gnu::noinline]] inline void CheckFailed(const char* file, int line,
                                                               const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace kvd::internal

// Aborts with file, line and the condition's text when it does not hold. It has a name of its own
// because CHECK is glog's in the product and Catch2's in tests; a header can use this one anywhere.
#define KVD_CHECK(condition)                         \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::kvd::internal::CheckFailed(__FILE__, __LINE__, #condition))
