// The commands' whole view of a server. kvcli talks to one through ClientStore; unit tests through
// a map.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd::cli {

struct ItemInfo {
  uint64_t version = 0;
  uint32_t user_flags = 0;
  int64_t expiry_unix_us = 0;  // 0: never
};

// Status codes and their meaning are those of client/kv_client.h. One thread at a time.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // For each operation from now on. Nothing: the library's, and none for a Scan.
  virtual void SetDeadline(std::optional<std::chrono::nanoseconds> deadline) = 0;

  virtual absl::Status Get(std::string_view key, std::string& value, ItemInfo& info) = 0;
  // Returns the new version.
  virtual absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value) = 0;
  virtual absl::Status Delete(std::string_view key) = 0;
  virtual absl::StatusOr<bool> Exists(std::string_view key) = 0;
  virtual absl::StatusOr<std::chrono::nanoseconds> Ping() = 0;

  using Statistics = std::vector<std::pair<std::string, std::string>>;
  virtual absl::StatusOr<Statistics> Stats() = 0;

  // Visits every item until `visit` returns false, which is no error. `visit` must not use the
  // store.
  using Visitor =
      std::function<bool(std::string_view key, std::string_view value, const ItemInfo& info)>;
  virtual absl::Status Scan(const Visitor& visit) = 0;

  // GETs that the server had to answer, because reading its memory did not succeed. Since it was
  // connected to.
  virtual uint64_t GetsByRequest() const { return 0; }

  // How long a READ of so many bytes of the server's memory takes that means nothing and is not
  // looked at: what no GET can undercut. Unimplemented: the server is not reached by READs;
  // OutOfRange: its memory has not that much.
  virtual absl::StatusOr<std::chrono::nanoseconds> PlainRead(uint64_t bytes) {
    static_cast<void>(bytes);
    return absl::UnimplementedError("shared memory is loaded from, not READ");
  }

  // Where the server is, for people: "shm:/run/kvd/kvd.sock".
  virtual std::string target() const = 0;
};

// How a server is reached by RDMA, besides where it is. Means nothing over shared memory.
struct RdmaChoice {
  std::string device;  // empty: the one that leads there
  bool connect_by_tcp = false;
  int gid_index = -1;  // -1: chosen

  bool operator==(const RdmaChoice&) const = default;
};

struct ConnectOptions {
  std::chrono::nanoseconds deadline{0};
  RdmaChoice rdma;
};

// Connects to `target` (empty: this user's default), within the deadline.
using Connector = std::function<absl::StatusOr<std::unique_ptr<KeyValueStore>>(
    std::string_view target, const ConnectOptions& options)>;

}  // namespace kvd::cli
