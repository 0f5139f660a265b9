// The commands' whole view of a server. kvcli talks to one through ClientStore; unit tests through
// a map.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

struct Condition {
  enum class Kind { kNone, kIfAbsent, kIfPresent, kIfVersion };
  Kind kind = Kind::kNone;
  uint64_t version = 0;  // kIfVersion

  bool operator==(const Condition&) const = default;
};

struct WriteOptions {
  Condition condition;
  std::chrono::microseconds ttl{0};  // 0: not given. At most one of the two is.
  int64_t expiry_unix_us = 0;
  uint32_t user_flags = 0;
};

struct Incremented {
  int64_t value = 0;
  uint64_t version = 0;
};

struct Got {
  absl::Status status;
  std::string value;
  ItemInfo info;
};

struct ScanOptions {
  std::string_view prefix = {};
  std::string cursor = {};  // where an earlier one ended; empty: the beginning
  uint64_t count = 0;       // ends behind the bucket in which so many were visited; 0: at the end
};

// Status codes and their meaning are those of client/kv_client.h. One thread at a time.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // For each operation from now on. Nothing: the library's, and none for a Scan.
  virtual void SetDeadline(std::optional<std::chrono::nanoseconds> deadline) = 0;

  virtual absl::Status Get(std::string_view key, std::string& value, ItemInfo& info) = 0;
  // A result for each key, in order.
  virtual std::vector<Got> MultiGet(std::span<const std::string> keys) = 0;

  // Those that return a number return the item's new version.
  virtual absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                                       const WriteOptions& options = {}) = 0;
  virtual absl::StatusOr<uint64_t> Append(std::string_view key, std::string_view piece,
                                          const WriteOptions& options) = 0;
  virtual absl::StatusOr<uint64_t> Prepend(std::string_view key, std::string_view piece,
                                           const WriteOptions& options) = 0;
  virtual absl::StatusOr<Incremented> Increment(std::string_view key, int64_t delta,
                                                const WriteOptions& options) = 0;
  virtual absl::StatusOr<uint64_t> Touch(std::string_view key, const WriteOptions& options) = 0;
  virtual absl::Status GetAndTouch(std::string_view key, std::string& value, ItemInfo& info,
                                   const WriteOptions& options) = 0;
  virtual absl::Status Delete(std::string_view key, const WriteOptions& options = {}) = 0;
  // How many items it deleted.
  virtual absl::StatusOr<uint64_t> Flush(std::string_view prefix) = 0;

  // A PUT that is under way when this returns. `done` is called by a later WaitForStarted. Of two
  // of one key either may come last.
  using Done = std::function<void(const absl::Status& status)>;
  virtual void StartPut(std::string_view key, std::string_view value, const WriteOptions& options,
                        Done done) = 0;
  // Blocks until one that was started has ended, or for some tenth of a second.
  virtual void WaitForStarted() = 0;

  virtual absl::StatusOr<bool> Exists(std::string_view key) = 0;
  virtual absl::StatusOr<std::chrono::nanoseconds> Ping() = 0;

  using Statistics = std::vector<std::pair<std::string, std::string>>;
  virtual absl::StatusOr<Statistics> Stats() = 0;

  // Visits every item until `visit` returns false, which is no error. `visit` must not use the
  // store. Returns the cursor to go on with, empty at the end.
  using Visitor =
      std::function<bool(std::string_view key, std::string_view value, const ItemInfo& info)>;
  virtual absl::StatusOr<std::string> Scan(const Visitor& visit, const ScanOptions& options) = 0;

  // Of an administrator: who is connected, and the end of somebody's sessions (how many).
  virtual absl::StatusOr<std::vector<Statistics>> Sessions() = 0;
  // Likewise, the requests that took the server long, the newest first.
  virtual absl::StatusOr<std::vector<Statistics>> SlowRequests() = 0;
  virtual absl::StatusOr<uint64_t> Kick(std::string_view who) = 0;

  // The server's clock, by which items expire.
  virtual int64_t ServerUnixUs() = 0;

  // GETs that the server had to answer, because reading its memory did not succeed. Since it was
  // connected to.
  virtual uint64_t GetsByRequest() const { return 0; }

  // What this client's GETs did, since it was connected.
  struct ReadCounters {
    uint64_t reads = 0;  // one-sided
    uint64_t read_bytes = 0;
    uint64_t torn_reads = 0;
    uint64_t moved_items = 0;
    uint64_t gets_by_request = 0;
    uint64_t location_hits = 0;
  };
  virtual ReadCounters Reads() const { return {}; }

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

// What a client proves to be admitted by; as in client/kv_client.h.
struct KeyChoice {
  std::string file;  // empty: nothing
  std::string name;

  bool operator==(const KeyChoice&) const = default;
};

struct ConnectOptions {
  std::chrono::nanoseconds deadline{0};
  KeyChoice key = {};
  RdmaChoice rdma;
  uint32_t credits = 0;  // requests under way at once; 0: the library's choice
  uint32_t location_cache_entries = 0;  // as the library's
  bool for_administration = false;  // as the library's
};

// Connects to `target` (empty: this user's default), within the deadline.
using Connector = std::function<absl::StatusOr<std::unique_ptr<KeyValueStore>>(
    std::string_view target, const ConnectOptions& options)>;

}  // namespace kvd::cli
