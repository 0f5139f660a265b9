// What kvd says while it waits for memory: nothing about a little, and about much not too often.
#include "server/kvd_memory_progress.h"

#include <string>
#include <vector>

#include "common/base/units.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

struct Said {
  std::vector<std::string> log;
  std::vector<std::string> status;

  MemoryProgress About(uint64_t bytes, const Clock& clock) {
    return MemoryProgress(
        bytes, clock, [this](const std::string& line) { log.push_back(line); },
        [this](const std::string& line) { status.push_back(line); });
  }
};

}  // namespace

TEST_CASE("Memory progress: much memory is announced before it comes, little is not") {
  const test::FakeClock clock;
  Said said;
  said.About(kGiB - 1, clock);
  CHECK(said.log.empty());
  said.About(4 * kGiB, clock);
  CHECK(said.log == std::vector<std::string>{"getting 4 GiB of memory ..."});
}

TEST_CASE("Memory progress: a line in the log only after seconds, none at the end") {
  test::FakeClock clock;
  Said said;
  MemoryProgress progress = said.About(100 * kMiB, clock);
  for (uint64_t percent = 1; percent <= 100; ++percent) {
    clock.AdvanceMs(100);
    progress.Update(percent * kMiB, 100 * kMiB);
  }
  CHECK(said.log == std::vector<std::string>{"getting memory: 30 % of 100 MiB",
                                             "getting memory: 60 % of 100 MiB",
                                             "getting memory: 90 % of 100 MiB"});
  CHECK(said.status.size() == 20);
  CHECK(said.status.back() == "getting memory: 100 % of 100 MiB");
}

TEST_CASE("Memory progress: it may begin again, when one kind of page ran out") {
  const test::FakeClock clock;
  Said said;
  MemoryProgress progress = said.About(100, clock);
  progress.Update(50, 100);
  progress.Update(0, 100);
  progress.Update(10, 100);
  CHECK(said.status.size() == 2);
}

}  // namespace kvd
