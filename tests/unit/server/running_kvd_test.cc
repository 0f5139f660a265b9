#include "server/running_kvd.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/transport/shm/socket_claim.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE("Running kvd: the holder of the socket's claim, with what its end will give back") {
  const TempDir dir;
  const std::string path = dir.Join("s");
  CHECK_FALSE(FindRunningKvd(path).has_value());
  {
    const auto claim = SocketClaim::Take(path);
    KVD_REQUIRE_OK(claim);
    const std::string pid = std::to_string(getpid());
    std::filesystem::create_directories(dir.Join("proc/" + pid));
    std::ofstream(dir.Join("proc/" + pid + "/status"))
        << "Name:\tkvd\nVmRSS:\t   65536 kB\nHugetlbPages:\t 4194304 kB\nThreads:\t4\n";
    const auto running = FindRunningKvd(path, dir.path());
    REQUIRE(running.has_value());
    CHECK(running->pid == pid);
    CHECK(running->resident_bytes == uint64_t{64} << 20);
    CHECK(running->hugepages_bytes == uint64_t{4} << 30);
    // What may not be seen counts as nothing.
    CHECK(FindRunningKvd(path, dir.Join("none"))->resident_bytes == 0);
  }
  CHECK_FALSE(FindRunningKvd(path).has_value());
}

}  // namespace kvd::test
