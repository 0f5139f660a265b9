#include "server/operations/port_counters.h"

#include <fstream>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd {
namespace {

// What tells of loss, of peers that do not keep up, and of accesses that were refused. Of the link,
// that some devices count among those of RDMA:
constexpr std::string_view kLinkErrors[] = {"symbol_error", "link_error_recovery", "link_downed",
                                            "port_rcv_errors", "port_xmit_discards"};
constexpr std::string_view kTransportErrors[] = {
    // of several vendors
    "duplicate_request", "implied_nak_seq_err", "local_ack_timeout_err", "out_of_buffer",
    "out_of_sequence", "packet_seq_err", "req_cqe_error", "req_remote_access_errors",
    "resp_cqe_error", "resp_remote_access_errors", "rnr_nak_retry_err", "rx_icrc_encapsulated",
    // of Soft-RoCE
    "completer_retry_err", "out_of_seq_request", "rcvd_rnr_err", "rcvd_seq_err",
    "retry_exceeded_err", "retry_rnr_exceeded_err", "send_err", "send_rnr_err"};

std::optional<uint64_t> Read(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

}  // namespace

void AddPortCounters(const std::string& device, uint64_t port, StatisticList& list,
                     const std::string& root) {
  const std::string of_port =
      absl::StrCat(root, "/sys/class/infiniband/", device, "/ports/", port, "/");
  const auto add = [&](std::string_view folder, std::string_view name) {
    const std::optional<uint64_t> count =
        Read(absl::StrCat(of_port, ToAbsl(folder), "/", ToAbsl(name)));
    if (!count.has_value()) return false;
    list.Counter(
        "", *count,
        {.name = "kvd_rdma_port_errors_total",
         .help = "What the RDMA device counts at its port that tells of loss, of peers that "
                 "do not keep up, and of refused accesses; by the device's own names.",
         .label = "counter",
         .label_value = name});
    return true;
  };
  for (const std::string_view name : kLinkErrors) {
    if (!add("counters", name)) add("hw_counters", name);
  }
  for (const std::string_view name : kTransportErrors) add("hw_counters", name);
  // The kernel counts words of four bytes.
  if (const auto words = Read(of_port + "counters/port_rcv_data"); words.has_value()) {
    list.Counter("", 4 * *words,
                 {.name = "kvd_rdma_port_received_bytes_total",
                  .help = "What the RDMA port has received, whoever for."});
  }
  if (const auto words = Read(of_port + "counters/port_xmit_data"); words.has_value()) {
    list.Counter("", 4 * *words,
                 {.name = "kvd_rdma_port_sent_bytes_total",
                  .help = "What the RDMA port has sent, whoever for."});
  }
}

}  // namespace kvd
