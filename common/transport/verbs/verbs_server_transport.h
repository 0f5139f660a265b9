// The server's side of the RDMA transport: one device, one protection domain, one memory region,
// one endpoint per poller, and the thread that accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/statistic_list.h"
#include "common/layout/frames.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/verbs/verbs_target.h"
#include "common/transport/verbs/window_policy.h"

namespace kvd {

struct VerbsServerOptions {
  std::string listen;  // HOST:PORT, [IPV6%ZONE]:PORT, *:PORT; port 0: any
  std::string device;  // empty: the one with the address, else the first with an active port
  std::byte* region_base = nullptr;  // writable, prefaulted; outlives the transport
  size_t region_bytes = 0;
  size_t pollers = 1;
  uint32_t frame_bytes = kFrameBytesDefault;  // longest that Admission may promise
  VerbsConnectMode connect = VerbsConnectMode::kCm;
  int gid_index = -1;       // kTcp only; -1: chosen
  WindowPolicy windows = WindowPolicy::kPrefer;
  uint8_t read_depth = 16;  // READs of one client under way at once, and of pulls from it
  // Of each poller, cut to what the device has. A connection takes three entries for each credit
  // and some, and a receive for each credit; who finds no room is refused with "server full: ...".
  uint32_t cq_entries = 65536;
  uint32_t shared_receives = 16384;
  // One line for each event that an operator should know of; any thread.
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

class VerbsServerTransport : public ServerTransport {
 public:
  // Opens the device, registers the region and binds the address; nothing listens yet. NotFound: no
  // such device; InvalidArgument: the address; Unavailable: no device can be used, the address is
  // taken; ResourceExhausted: what could not be registered, with the limit (memlock).
  static absl::StatusOr<std::unique_ptr<VerbsServerTransport>> Create(
      const VerbsServerOptions& options);

  // The port that is listened on, also where 0 was asked for.
  virtual uint16_t port() const = 0;

  // For the statistics: device, limits, counters. Any thread.
  virtual StatisticList Facts() const = 0;
};

}  // namespace kvd
