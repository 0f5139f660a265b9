#include "tests/softroce/tsc_frequency.h"

#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

namespace kvd::softroce {
namespace {

constexpr useconds_t kWindow_us = 30'000;
constexpr int kTries = 20;

struct Instant {
  uint64_t tsc = 0;
  uint64_t ns = 0;
};

uint64_t Now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Both clocks at once: of several tries the one that was interrupted least.
Instant Sample() {
  Instant best;
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = __rdtsc();
    const uint64_t ns = Now_ns();
    const uint64_t width = __rdtsc() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {.tsc = before + width / 2, .ns = ns};
  }
  return best;
}

}  // namespace

uint64_t MeasureTsc_khz() {
  const Instant start = Sample();
  usleep(kWindow_us);
  const Instant end = Sample();
  return (end.tsc - start.tsc) * 1'000'000 / (end.ns - start.ns);
}

}  // namespace kvd::softroce
