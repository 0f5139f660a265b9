// What a user names as a server, taken apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvd {

inline constexpr uint16_t kDefaultPort = 7711;

struct Target {
  enum class Kind { kShm, kRdma };
  Kind kind = Kind::kShm;
  std::string socket_path;  // kShm
  std::string host;         // kRdma: a name or an address, IPv6 without brackets, a zone after '%'
  uint16_t port = 0;        // kRdma
  std::string name;         // for people, and parsed to the same again: "shm:/run/kvd/kvd.sock",
                            // "rdma:[fe80::1%ib0]:7711"
};

// "shm:PATH", a path (with a slash before any colon, or with the ending ".sock", or of a socket
// that is there, and no colon), or empty: the default socket of this user. "rdma:HOST",
// "rdma:HOST:PORT", "HOST:PORT": a kvd on another host (or this one) by RDMA; an IPv6 address
// stands in brackets. InvalidArgument names the target and what is wrong with it.
absl::StatusOr<Target> ParseTarget(std::string_view text);

// Several, separated by commas, none of them empty; or an empty text. At least one comes back.
absl::StatusOr<std::vector<Target>> ParseTargets(std::string_view text);

}  // namespace kvd
