// Safeguards that a build for tests can leave out, to see that their absence is found.
#pragma once

#include <cstdlib>
#include <string_view>

namespace kvd {

#if defined(KVD_PLANTED_FAULTS)

// Whether the environment variable KVD_PLANTED_FAULT names it. Only where tests build so
// (tests/stress/canary.bzl).
inline bool Planted(std::string_view fault) {
  static const char* const planted = std::getenv("KVD_PLANTED_FAULT");
  return planted != nullptr && fault == planted;
}

#else

// Nothing is left of it in the program.
constexpr bool Planted(std::string_view /*fault*/) { return false; }

#endif

}  // namespace kvd
