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

TEST_CASE("Running kvd: the ports at which it listens, and not those of others") {
  const TempDir dir;
  const std::string process = dir.Join("proc/7");
  std::filesystem::create_directories(process + "/fd");
  std::filesystem::create_directories(process + "/net");
  std::filesystem::create_symlink("socket:[111]", process + "/fd/3");
  std::filesystem::create_symlink("socket:[222]", process + "/fd/4");
  constexpr char kHead[] =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n";
  constexpr char kEnd[] = " 00000000:00000000 00:00000000 00000000     0        0 ";
  std::ofstream(process + "/net/tcp")
      << kHead << "   0: 0100007F:1E20 00000000:0000 0A" << kEnd << "111 1 0 100 0 0 10 0\n"
      << "   1: 0100007F:1E21 0100007F:9C40 01" << kEnd << "222 1 0 20 4 30 10 -1\n"
      << "   2: 0100007F:1E22 00000000:0000 0A" << kEnd << "999 1 0 100 0 0 10 0\n";
  std::ofstream(process + "/net/tcp6")
      << kHead
      << "   0: 00000000000000000000000001000000:1E23 00000000000000000000000000000000:0000 "
      << "0A" << kEnd << "222 1 0 100 0 0 10 0\n";
  CHECK(MayListenAt("7", 7712, dir.path()));
  CHECK_FALSE(MayListenAt("7", 7713, dir.path()));  // a connection
  CHECK_FALSE(MayListenAt("7", 7714, dir.path()));  // somebody else's
  CHECK(MayListenAt("7", 7715, dir.path()));
  CHECK(MayListenAt("8", 7714, dir.path()));  // not to be seen
}

}  // namespace kvd::test
