// A number that one thread writes and any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvd {

class Counter {
 public:
  // The writer only. No read-modify-write is needed with one writer; relaxed, because nothing else
  // hangs on it.
  void Add(uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  void Subtract(uint64_t n) { value_.store(get() - n, std::memory_order_relaxed); }
  void Set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }

  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace kvd
