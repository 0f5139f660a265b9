// What a benchmark drives: a kvd, or a store to compare it with.
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
#include "client/kv_client.h"

namespace kvd::bench {

// A started operation that has come back.
struct Ended {
  uint64_t tag = 0;
  absl::Status status;
  size_t length = 0;     // GET: of the value
  uint64_t version = 0;  // of the item
};

// One client's connection; one thread at a time. Errors are those of kv_client.h. What a store
// cannot do is UNIMPLEMENTED.
class Store {
 public:
  virtual ~Store() = default;

  virtual absl::Status Get(std::string_view key, std::string& value, uint64_t& version) = 0;
  virtual absl::Status Put(std::string_view key, std::string_view value) = 0;
  // ABORTED: the item has another version by now.
  virtual absl::Status PutIfVersion(std::string_view /*key*/, std::string_view /*value*/,
                                    uint64_t /*version*/) {
    return absl::UnimplementedError("no conditions here; leave out --rmw=cas");
  }

  // As Client::MultiGet.
  virtual absl::Status MultiGet(std::span<const std::string_view> keys,
                                std::span<GetResult> results) = 0;
  // All are on their way before the first answer is waited for. The first error, if any.
  virtual absl::Status MultiPut(std::span<const PutRequest> puts) = 0;

  // Operations that are under way beside others. `buffer` belongs to the store until the operation
  // has ended; the key and the value to put are copied.
  virtual bool CanStart() const { return false; }
  virtual void StartGet(std::string_view /*key*/, std::span<char> /*buffer*/, uint64_t /*tag*/) {}
  virtual void StartPut(std::string_view /*key*/, std::string_view /*value*/, uint64_t /*version*/,
                        uint64_t /*tag*/) {}
  // Waits for at least one that has ended, up to `timeout`; returns how many there are.
  virtual size_t Wait(std::span<Ended> /*ended*/, std::chrono::nanoseconds /*timeout*/) {
    return 0;
  }

  // Since the beginning; all 0 where a store does not count.
  virtual ClientCounters counters() const { return {}; }

  // The server's statistics, as it names them; nothing for a store within this process.
  using Statistics = std::vector<std::pair<std::string, std::string>>;
  virtual absl::StatusOr<Statistics> Stats() { return Statistics(); }
  // Processor time that the server has used so far, by those; below 0: unknown.
  virtual int64_t ServerCpuUs(const Statistics& /*statistics*/) const { return -1; }
};

// Connects client number `index`; called in the thread or process that will use it. With index
// kControl it is for Stats alone.
using StoreMaker = std::function<absl::StatusOr<std::unique_ptr<Store>>(size_t index)>;
inline constexpr size_t kControl = static_cast<size_t>(-1);

}  // namespace kvd::bench
