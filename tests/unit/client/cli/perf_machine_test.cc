#include "client/cli/perf_machine.h"

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::cli {
namespace {

using kvd::test::TempDir;

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST_CASE("Perf machine: a processor's node and governor") {
  const TempDir root;
  CHECK(NodeOfCpu(3, root.path()) == -1);
  CHECK(GovernorOf(3, root.path()).empty());
  std::filesystem::create_directories(root.Join("sys/devices/system/cpu/cpu3/node1"));
  Write(root.Join("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"), "powersave\n");
  CHECK(NodeOfCpu(3, root.path()) == 1);
  CHECK(GovernorOf(3, root.path()) == "powersave");
}

TEST_CASE("Perf machine: a file that cannot be read is empty, also one that can be opened") {
  const TempDir root;
  Write(root.Join("file"), std::string("a\0b\n", 4));
  CHECK(ReadTextFile(root.Join("file")) == std::string("a\0b\n", 4));
  CHECK(ReadTextFile(root.Join("none")).empty());
  CHECK(ReadTextFile(root.path()).empty());  // a directory
}

TEST_CASE("Perf machine: how this thread came by its processor, and who else wants one") {
  const TempDir root;
  CHECK(ReadOwnProcessor(root.path()).queued_us == 0);
  CHECK(CpuPressurePercent(root.path()) == -1);
  CHECK(LoadOfLastMinute(root.path()) == -1);
  Write(root.Join("proc/thread-self/schedstat"), "900000 47852000 3\n");
  Write(root.Join("proc/thread-self/status"),
        "Name:\tkvcli\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t17\n");
  Write(root.Join("proc/pressure/cpu"),
        "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=0.00 total=0\n");
  Write(root.Join("proc/loadavg"), "3.25 1.00 0.50 2/100 999\n");
  const OwnProcessor own = ReadOwnProcessor(root.path());
  CHECK(own.queued_us == 47852);
  CHECK(own.put_off == 17);
  CHECK(CpuPressurePercent(root.path()) == 12.5);
  CHECK(LoadOfLastMinute(root.path()) == 3.25);
  const OwnProcessor more = Between({.queued_us = 47000, .put_off = 20}, own);
  CHECK(more.queued_us == 852);
  CHECK(more.put_off == 0);
}

TEST_CASE("Perf machine: port counters, and which of them mean loss") {
  const TempDir root;
  const std::string port = root.Join("sys/class/infiniband/mlx5_0/ports/1/");
  Write(port + "hw_counters/out_of_sequence", "7\n");
  Write(port + "hw_counters/rx_read_requests", "100\n");
  Write(port + "hw_counters/lifespan", "no number\n");
  Write(port + "counters/port_rcv_errors", "0\n");
  const PortCounters before = ReadPortCounters(root.path());
  CHECK(before.size() == 3);
  Write(port + "hw_counters/out_of_sequence", "9\n");
  Write(port + "hw_counters/rx_read_requests", "900\n");
  const auto losses = LossesBetween(before, ReadPortCounters(root.path()));
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].first == "mlx5_0/1 out_of_sequence");
  CHECK(losses[0].second == 2);
  CHECK(ReadPortCounters(root.Join("nothing")).empty());

  for (const char* name :
       {"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err",
        "roce_adp_retrans", "duplicate_request", "out_of_seq_request", "rcvd_seq_err",
        "completer_retry_err", "rcvd_rnr_err", "link_downed", "port_rcv_errors"}) {
    INFO(name);
    CHECK(CountsLoss(name));
  }
  for (const char* name : {"sent_pkts", "rcvd_pkts", "rdma_sends", "port_xmit_data",
                           "rx_read_requests", "ack_deferred", "np_ecn_marked_roce_packets"}) {
    INFO(name);
    CHECK_FALSE(CountsLoss(name));
  }
}

TEST_CASE("Perf machine: pages in which the region is mapped") {
  const std::string small =
      "55d0-55d1 r--p 00000000 08:01 12 /usr/bin/kvcli\n"
      "Size:  4 kB\nKernelPageSize:        4 kB\nRss: 4 kB\n"
      "7f0000000000-7f0004000000 r--s 00000000 00:01 9 /memfd:kvd-region (deleted)\n"
      "Size:              65536 kB\nKernelPageSize:        4 kB\nMMUPageSize:           4 kB\n"
      "Rss:                1024 kB\nShmemPmdMapped:        0 kB\nVmFlags: rd sh\n"
      "7f1000000000-7f1000200000 rw-p 00000000 00:00 0 /anon_hugepage\n"
      "KernelPageSize:     2048 kB\n";
  CHECK(MappedPageBytes(small, "kvd-region") == 4096);
  CHECK(MappedPageBytes(small, "anon_hugepage") == 2 << 20);
  CHECK(MappedPageBytes(small, "nothing") == 0);
  CHECK(MappedPageBytes("", "kvd-region") == 0);
  std::string huge = small;
  huge.replace(huge.find("ShmemPmdMapped:        0"), 24, "ShmemPmdMapped:     1024");
  CHECK(MappedPageBytes(huge, "kvd-region") == 2 << 20);
}

}  // namespace
}  // namespace kvd::cli
