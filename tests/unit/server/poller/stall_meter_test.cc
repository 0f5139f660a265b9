#include "server/poller/stall_meter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/test.h"
#include "tests/unit/server/poller/poller_rig.h"

namespace kvd::test {
namespace {

constexpr int64_t kMs = 1'000'000;

struct Meter {
  int64_t processor_ns = 5 * kMs;
  StallMeter meter{[this] { return processor_ns; }};
};

}  // namespace

TEST_CASE("Stall meter: long work is no stall; time without a processor is") {
  Meter rig;
  CHECK(rig.meter.IsDue(1000 * kMs));
  CHECK(rig.meter.Look(1000 * kMs) == 0);
  CHECK_FALSE(rig.meter.IsDue(1001 * kMs - 1));
  CHECK(rig.meter.IsDue(1001 * kMs));
  rig.processor_ns += 300 * kMs;
  CHECK(rig.meter.Look(1300 * kMs) == 0);
  rig.processor_ns += 2 * kMs;
  CHECK(rig.meter.Look(1332 * kMs) == 30 * kMs);
}

TEST_CASE("Stall meter: what is shorter than a millisecond between two looks is none") {
  Meter rig;
  rig.meter.Look(0);
  rig.processor_ns += kMs;
  CHECK(rig.meter.Look(2 * kMs - 1) == 0);
  CHECK(rig.meter.Look(3 * kMs - 1) == kMs);
}

TEST_CASE("Stall meter: sleep on purpose is none, but for what it lasted too long") {
  Meter rig;
  rig.meter.Look(0);
  rig.processor_ns += kMs;
  CHECK(rig.meter.Slept(1 * kMs, 900 * kMs, INT64_MAX) == 0);
  CHECK(rig.meter.Slept(900 * kMs, 1000 * kMs, 1000 * kMs - kMs + 1) == 0);
  CHECK(rig.meter.Slept(1000 * kMs, 2000 * kMs, 1100 * kMs) == 900 * kMs - kMs / 2);
  // What the kernel allows itself with a long one.
  CHECK(rig.meter.Slept(0, 10'050 * kMs, 10'000 * kMs) == 0);
  CHECK(rig.meter.Slept(0, 10'052 * kMs, 10'000 * kMs) == 2 * kMs);
  CHECK(rig.meter.Look(2000 * kMs) == 0);
  rig.processor_ns += 1 * kMs;
  CHECK(rig.meter.Look(2003 * kMs) == 2 * kMs);
}

TEST_CASE("Stall meter: the kernel's count of a thread's processor time goes on with its work") {
  const int64_t before_ns = ThreadProcessorNs();
  while (ThreadProcessorNs() - before_ns < kMs) continue;
  SUCCEED();
}

TEST_CASE("Poller: a sleep that does not end in time is a stall, while somebody is connected") {
  ServerRig rig(1, PollMode::kEvent);
  const RequestCounters& counters = rig.peers[0]->counters();
  Peer peer(rig);
  peer.Send(Opcode::kPing);
  peer.Receive();
  const uint64_t before = counters.stalls.get();
  // The signal's handler keeps the poller's thread, and with it its nap, from ending.
  static std::atomic<bool> held{false};
  struct sigaction hold {};
  hold.sa_handler = [](int) {
    held = true;
    const timespec time{0, 300'000'000};
    nanosleep(&time, nullptr);
  };
  hold.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGUSR1, &hold, nullptr) == 0);
  while (rig.peers[0]->thread_id() == 0) continue;
  REQUIRE(syscall(SYS_tgkill, getpid(), rig.peers[0]->thread_id(), SIGUSR1) == 0);
  while (!held || counters.stalls.get() == before) std::this_thread::yield();
  CHECK(counters.stalled_ns.get() >= 100 * kMs);
}

}  // namespace kvd::test
