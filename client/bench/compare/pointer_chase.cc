// Nanoseconds of one read that depends on the one before, over as many bytes as asked: what the
// machine's memory costs whoever reads at random.
//
//   pointer_chase BYTES...        a line each: bytes, nanoseconds
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <numeric>
#include <vector>

#include "common/base/clock.h"
#include "common/base/random.h"

namespace {

struct alignas(64) Line {
  uint64_t next;
};

double ChaseNs(uint64_t bytes) {
  const uint64_t count = bytes / sizeof(Line) < 2 ? 2 : bytes / sizeof(Line);
  std::vector<Line> lines(count);
  for (uint64_t i = 0; i < count; ++i) lines[i].next = i;
  kvd::Random random(1);
  // One cycle through all (Sattolo).
  for (uint64_t i = count - 1; i > 0; --i) std::swap(lines[i].next, lines[random.Uniform(i)].next);
  constexpr int kSteps = 3'000'000;
  uint64_t at = 0;
  for (int i = 0; i < kSteps / 10; ++i) at = lines[at].next;
  const int64_t begin_ns = kvd::RealClock::Get().NowMonotonicNs();
  for (int i = 0; i < kSteps; ++i) at = lines[at].next;
  const int64_t end_ns = kvd::RealClock::Get().NowMonotonicNs();
  volatile uint64_t sink = at;
  (void)sink;
  return static_cast<double>(end_ns - begin_ns) / kSteps;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "pointer_chase: give numbers of bytes\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) {
    const uint64_t bytes = std::strtoull(argv[i], nullptr, 10);
    std::printf("%llu %.2f\n", static_cast<unsigned long long>(bytes), ChaseNs(bytes));
  }
  return 0;
}
