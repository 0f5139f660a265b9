// What is read from the kernel: of the process's memory, of an RDMA port.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "server/operations/port_counters.h"
#include "server/operations/statistics.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

std::map<std::string, uint64_t> CountersOf(const std::string& device, const std::string& root) {
  StatisticList list;
  AddPortCounters(device, 1, list, root);
  std::map<std::string, uint64_t> counters;
  for (const Statistic& row : list.rows()) {
    const std::string name = row.MetricName() + " " + std::string(row.metric.label_value);
    CHECK(counters.emplace(name, row.number).second);
    CHECK(row.name.empty());
  }
  return counters;
}

}  // namespace

TEST_CASE("Port counters: those of a fixed set that the device has, each once; others not") {
  const TempDir root;
  const std::string port = root.Join("sys/class/infiniband/mlx5_0/ports/1/");
  Write(port + "counters/symbol_error", "3\n");
  Write(port + "counters/link_downed", "1\n");
  Write(port + "hw_counters/link_downed", "7\n");
  Write(port + "counters/port_rcv_data", "1000\n");
  Write(port + "counters/port_xmit_data", "5\n");
  Write(port + "hw_counters/packet_seq_err", "9\n");
  Write(port + "hw_counters/of_a_later_driver", "9\n");
  Write(port + "hw_counters/out_of_sequence", "N/A (no PMA)\n");
  CHECK(CountersOf("mlx5_0", root.Join("")) ==
        std::map<std::string, uint64_t>{{"kvd_rdma_port_errors_total link_downed", 1},
                                        {"kvd_rdma_port_errors_total packet_seq_err", 9},
                                        {"kvd_rdma_port_errors_total symbol_error", 3},
                                        {"kvd_rdma_port_received_bytes_total ", 4000},
                                        {"kvd_rdma_port_sent_bytes_total ", 20}});
  CHECK(CountersOf("mlx5_1", root.Join("")).empty());
  Write(root.Join("sys/class/infiniband/rxe0/ports/1/hw_counters/link_downed"), "2\n");
  CHECK(CountersOf("rxe0", root.Join("")) ==
        std::map<std::string, uint64_t>{{"kvd_rdma_port_errors_total link_downed", 2}});
}

TEST_CASE("Queued: what the kernel says of a thread; 0 where it says nothing") {
  const TempDir root;
  CHECK(ReadQueuedNs(17, root.Join("")) == 0);
  Write(root.Join("proc/self/task/17/schedstat"), "689084 47852 1\n");
  CHECK(ReadQueuedNs(17, root.Join("")) == 47852);
  Write(root.Join("proc/self/task/17/schedstat"), "off\n");
  CHECK(ReadQueuedNs(17, root.Join("")) == 0);
}

TEST_CASE("Locked memory: what the kernel says, 0 where it says nothing") {
  const TempDir root;
  CHECK(ReadLockedMemory(root.Join("")).locked_bytes == 0);
  Write(root.Join("proc/self/status"),
        "Name:\tkvd\nVmLck:\t      12 kB\nVmPin:\t 65536 kB\nVmHWM:\t 99 kB\n"
        "HugetlbPages:\t    2048 kB\n");
  const LockedMemory memory = ReadLockedMemory(root.Join(""));
  CHECK(memory.locked_bytes == 12 << 10);
  CHECK(memory.pinned_bytes == 64 << 20);
  CHECK(memory.hugepages_bytes == 2 << 20);
}

}  // namespace kvd::test
