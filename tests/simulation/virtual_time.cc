#include "tests/simulation/virtual_time.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

namespace kvd::test {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kStartNs = 1000 * kSecondNs;
constexpr int64_t kUnixNs = 1'700'000'000 * kSecondNs;  // of the monotonic clock's 0

// 0: off. Other threads (those that touch a region's pages) only read it.
std::atomic<int64_t> virtual_ns{0};
std::atomic<int64_t> jumped_ns{0};
std::function<void(int64_t)> sleeper;
uint64_t randomness = 0;

timespec ToTimespec(int64_t ns) { return {ns / kSecondNs, ns % kSecondNs}; }
int64_t ToNs(const timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }

}  // namespace

void VirtualTime::Begin(uint64_t seed, std::function<void(int64_t)> sleep_until) {
  randomness = seed;
  sleeper = std::move(sleep_until);
  jumped_ns.store(0);
  virtual_ns.store(kStartNs);
}

void VirtualTime::End() {
  virtual_ns.store(0);
  sleeper = nullptr;
}

int64_t VirtualTime::now_ns() { return virtual_ns.load(std::memory_order_relaxed); }
void VirtualTime::Advance(int64_t ns) { virtual_ns.fetch_add(ns); }
void VirtualTime::JumpUnix(int64_t ns) { jumped_ns.fetch_add(ns); }
void VirtualTime::AdvanceTo(int64_t ns) { virtual_ns.store(std::max(now_ns(), ns)); }

namespace {

int ReadClock(clockid_t clock, timespec* time) {
  const int64_t now_ns = VirtualTime::now_ns();
  const bool monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
                         clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
  const bool unix_time = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (now_ns == 0 || (!monotonic && !unix_time)) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  }
  *time = ToTimespec(unix_time ? now_ns + kUnixNs + jumped_ns.load() : now_ns);
  return 0;
}

int Sleep(clockid_t clock, int flags, const timespec* request, timespec* remain) {
  const int64_t now_ns = VirtualTime::now_ns();
  if (now_ns == 0) {
    return syscall(SYS_clock_nanosleep, clock, flags, request, remain) == 0 ? 0 : errno;
  }
  const int64_t base_ns = clock == CLOCK_REALTIME ? now_ns + kUnixNs + jumped_ns.load() : now_ns;
  const int64_t until_ns =
      (flags & TIMER_ABSTIME) != 0 ? ToNs(*request) - base_ns + now_ns : now_ns + ToNs(*request);
  if (until_ns > now_ns) sleeper(until_ns);
  return 0;
}

}  // namespace
}  // namespace kvd::test

// The program's own come before libc's.
extern "C" {
ssize_t getrandom(void* buffer, size_t bytes, unsigned flags) {
  using namespace kvd::test;  // NOLINT
  if (VirtualTime::now_ns() == 0) return syscall(SYS_getrandom, buffer, bytes, flags);
  for (size_t i = 0; i < bytes; ++i) {
    randomness = randomness * 6364136223846793005 + 1442695040888963407;
    static_cast<unsigned char*>(buffer)[i] = static_cast<unsigned char>(randomness >> 56);
  }
  return static_cast<ssize_t>(bytes);
}
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  return kvd::test::ReadClock(clock, time);
}
int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* remain) {
  return kvd::test::Sleep(clock, flags, request, remain);
}
int usleep(useconds_t us) {
  const timespec request{us / 1'000'000, us % 1'000'000 * 1000};
  return kvd::test::Sleep(CLOCK_MONOTONIC, 0, &request, nullptr);
}
}
