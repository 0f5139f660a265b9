// A client process that carries out random operations and writes each of them down.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/kv_client.h"
#include "tests/linearizability/operation_log.h"

namespace kvd::test {

// Shared by all processes of a recording; made before fork().
struct RecordingBoard {
  alignas(64) std::atomic<bool> stop{false};
  std::atomic<bool> broken{false};  // a client met something that no contract allows, and said so
  alignas(64) std::atomic<uint64_t> keys{0};     // cold keys are added at this end
  alignas(64) std::atomic<uint64_t> unknown{0};  // writes without an answer
  // Of ClientCounters, summed up over clients that ended by themselves.
  std::atomic<uint64_t> torn_reads{0};
  std::atomic<uint64_t> moved_items{0};
  std::atomic<uint64_t> redirects{0};
  std::atomic<uint64_t> confirmations{0};
  std::atomic<uint64_t> location_hits{0};
  std::atomic<uint64_t> stale_locations{0};
  std::atomic<uint64_t> gets_by_request{0};
  std::atomic<uint64_t> scans{0};  // that came to their end
  std::atomic<uint64_t> reconnects{0};
  std::atomic<uint64_t> longest_over_deadline_ns{0};  // how much later any operation returned
  // Of the last kvd, at the end.
  uint64_t expired_items = 0;
  uint64_t evicted_items = 0;
  uint64_t merges = 0;
  uint64_t index_bytes_given_back = 0;
};

struct RecordingPlan {
  std::string target;
  ClientOptions options;
  uint64_t seed = 0;
  uint64_t hot_keys = 32;
  uint16_t client = 0;  // no two clients of a recording have the same number
  enum class Habit : uint8_t {
    kAny,
    kFills,       // it adds cold keys, and does little else
    kBreathes,    // it adds a range of cold keys and takes it away, again and again
    kManyAtOnce,  // several operations of its own are under way
    kReads,  // it only reads, and only keys of KeyRole::kMoving, so it is mostly between two reads
  };
  Habit habit = Habit::kAny;
  uint32_t cold_one_in = 4;
  bool expiry = false;
};

// Runs until `board.stop` or the log is full; returns the process's exit status.
int RunRecordingClient(const RecordingPlan& plan, RecordingBoard& board, OperationLog& log);
// The same with clients that `connect` makes.
int RunRecordingClient(const RecordingPlan& plan, RecordingBoard& board, OperationLog& log,
                       const std::function<absl::StatusOr<std::unique_ptr<Client>>()>& connect);

}  // namespace kvd::test
