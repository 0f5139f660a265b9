// The kvd client library: this header is all of it that applications include.
//
//   absl::StatusOr<std::unique_ptr<kvd::Client>> client = kvd::Client::Connect("shm:/run/kvd/kvd.sock");
//   if (!client.ok()) ...
//   absl::StatusOr<kvd::PutResult> put = client.value()->Put("greeting", "hello");
//   std::string value;
//   if (put.ok() && client.value()->Get("greeting", value).ok()) std::cout << value;
//
// A GET reads the server's memory by itself (loads from shared memory, or RDMA READs) and verifies what it read; the
// server takes no part in it. Everything that writes is a request to the server.
//
// Errors, for every operation:
//   code               meaning                                           retry?                      who acts
//   NOT_FOUND          the key had no value at some moment of the call   as you like                 application
//   INVALID_ARGUMENT   key empty or over 4096 bytes; bad target          no                          application
//   OUT_OF_RANGE       value over the server's --max_value               no                          application
//   RESOURCE_EXHAUSTED the region is full; nothing was changed           after deletes               operator
//   DEADLINE_EXCEEDED  not done in time; a write may still take effect   reads yes, writes: see below application
//   UNAVAILABLE        no server there, it went away, or it is full      yes, with back-off          operator
//   PERMISSION_DENIED  not admitted, or the socket may not be opened     no                          operator
//   FAILED_PRECONDITION no common protocol version                       no                          operator
//   DATA_LOSS          the server or its memory broke the format         no                          operator, and us
//   UNKNOWN            a write was sent and its answer lost: it took     read first                  application
//                      effect once or not at all
//
// Threads: a Client may be used by one thread at a time. Make one per thread; they are cheap.
// Calls block up to their deadline. After fork() the child must not use the parent's clients: FAILED_PRECONDITION. It may
// destroy them, which gives nothing back and disturbs nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd {

struct ClientOptions {
  // For Connect, and for each operation that does not bring its own.
  std::chrono::nanoseconds deadline = std::chrono::seconds(5);
  // Shown in the server's log and statistics. At most 23 printable characters are kept.
  std::string name;
  // Requests that may be outstanding; the server may grant fewer.
  uint32_t credits = 16;
  // Reads each bucket whole, as over RDMA, also where the region is shared memory. To count READs, not for speed.
  bool read_whole_buckets = false;
  // Locations of items that are remembered, 16 bytes each; rounded up to a power of two. A remembered item takes one
  // exact read; one that has moved costs one read more, and never a wrong answer. 0: none.
  uint32_t location_cache_entries = 0;
  // RDMA only. The device to use, as `kvcli devices` lists it; empty: the one that the route to the server leads over.
  std::string rdma_device;
  // RDMA only. Connects without rdma_cm: the server must run with --connect=tcp. The GID index then is `rdma_gid_index`,
  // or chosen where it is negative.
  bool rdma_connect_by_tcp = false;
  int rdma_gid_index = -1;
};

struct OperationOptions {
  std::chrono::nanoseconds deadline{0};  // 0: the client's
};

// What a GET learns besides the value.
struct ItemInfo {
  uint64_t version = 0;     // grows with every write of the key, also across delete and re-insertion
  uint32_t user_flags = 0;
  int64_t expiry_unix_us = 0;  // 0: never
};

struct PutResult {
  uint64_t version = 0;
};

// Counted since Connect; only this client object's own operations.
struct ClientCounters {
  uint64_t gets = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t reads = 0;            // one-sided reads: READs, or their equivalent in loads
  uint64_t read_bytes = 0;
  uint64_t torn_reads = 0;       // reads that did not verify and were repeated
  uint64_t moved_items = 0;      // items found DEAD or WRITING and looked up again
  uint64_t redirects = 0;        // buckets that had been split
  uint64_t confirmations = 0;    // misses that were read a second time
  uint64_t location_hits = 0;    // GETs answered by one exact read of a remembered location
  uint64_t stale_locations = 0;  // remembered locations that held the key's item no more
  uint64_t gets_by_request = 0;  // GETs that the server had to answer
  uint64_t requests = 0;         // requests sent, of any kind
};

class Client {
 public:
  // `target`: "shm:PATH", a bare path beginning with '/', or empty for the default socket of this user; "rdma:HOST:PORT" or
  // "HOST:PORT" for a kvd that is reached by RDMA (an IPv6 address in brackets; port 7711 if "rdma:" names none). Blocks up
  // to the deadline. UNAVAILABLE names where and what was wrong; INVALID_ARGUMENT names the target.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(std::string_view target, const ClientOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Stores the key's current value in `value`, whose capacity is reused; `info` may be null. On any error `value` is
  // unspecified but valid.
  absl::Status Get(std::string_view key, std::string& value, ItemInfo* info = nullptr,
                   const OperationOptions& options = {});
  absl::StatusOr<std::string> Get(std::string_view key, const OperationOptions& options = {});

  // Places the value in `buffer` and returns its length. OUT_OF_RANGE: the value is longer than the buffer (the
  // message says how long), which is then unspecified.
  absl::StatusOr<size_t> GetInto(std::string_view key, std::span<char> buffer, const OperationOptions& options = {});

  // Ok once the server has acknowledged: every later GET, by any client, sees this value or a later one.
  absl::StatusOr<PutResult> Put(std::string_view key, std::string_view value, const OperationOptions& options = {});

  // NOT_FOUND if there was nothing to delete.
  absl::Status Delete(std::string_view key, const OperationOptions& options = {});

  // One-sided, like Get, without copying the value out.
  absl::StatusOr<bool> Exists(std::string_view key, const OperationOptions& options = {});

  // A request to the server and back; returns how long it took.
  absl::StatusOr<std::chrono::nanoseconds> Ping(const OperationOptions& options = {});

  // The server's statistics as name and value, in the server's order.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Stats(const OperationOptions& options = {});

  // Calls `visit(key, value, info)` for every item, reading the region one-sidedly; stops early when it returns false.
  // A key that is present all the time is visited at least once; one that is written meanwhile may be visited twice,
  // with both values. The views are valid during the call only. The deadline, if given, is for the whole scan; without
  // one there is none. `visit` must not use this client.
  using Visitor = std::function<bool(std::string_view key, std::string_view value, const ItemInfo& info)>;
  absl::Status Scan(const Visitor& visit, const OperationOptions& options = {});

  const ClientCounters& counters() const;

  // Where this client is connected, for people: "shm:/run/kvd/kvd.sock".
  const std::string& target() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvd
