// Where recording clients, each a process of its own, write down what they do: memory that they
// share, so that the operations of one that was killed are there up to its last instant.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/linearizability/operation.h"

namespace kvd::test {

// The monotonic clock, read after everything before the call and before everything after it.
int64_t OrderedNowNs();

class OperationLog {
 public:
  // Room for `capacity` operations; null if there is no memory. Made before fork().
  static std::unique_ptr<OperationLog> Create(uint64_t capacity);
  ~OperationLog();
  OperationLog(const OperationLog&) = delete;
  OperationLog& operator=(const OperationLog&) = delete;

  // Slots given out, in all processes: about as many as operations.
  uint64_t taken() const { return head_->taken.load(std::memory_order_relaxed); }
  uint64_t capacity() const { return capacity_; }

  void Clear();

  // What has been written down. Call it when no client writes any more.
  std::vector<Operation> Collect() const;

 private:
  friend class LogWriter;
  struct Head {
    alignas(64) std::atomic<uint64_t> taken{0};
  };
  OperationLog(void* memory, uint64_t bytes, uint64_t capacity);

  void* const memory_;
  const uint64_t bytes_;
  const uint64_t capacity_;
  Head* const head_;
  Operation* const slots_;
};

// One client's pen.
class LogWriter {
 public:
  explicit LogWriter(OperationLog& log) : log_(log) {}

  // Writes down that `operation` is about to begin, and sets when. Returns where, to be given to
  // one of the others; null: the log is full.
  Operation* Begin(Operation& operation);

  // Writes down how it ended, and when.
  void End(Operation* slot, const Operation& operation);

  // Strikes it out: it has done nothing and learned nothing.
  void StrikeOut(Operation* slot);

 private:
  static constexpr uint64_t kSlotsAtOnce = 64;

  OperationLog& log_;
  uint64_t next_ = 0;
  uint64_t end_ = 0;
};

}  // namespace kvd::test
