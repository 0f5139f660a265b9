// Numbers handed out to several clients, and up to where all of them have been used.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace kvd::bench {

// As YCSB's generator of the same name: a key that is being inserted is not read before it is
// there, nor is any that comes after it. Lies in memory that processes share; all zeros is a good
// state. Any thread.
class AcknowledgedCounter {
 public:
  static constexpr size_t kOutstandingMax = size_t{1} << 18;

  // Once, before anything else.
  void Begin(uint64_t first) {
    next_.store(first, std::memory_order_relaxed);
    limit_.store(first, std::memory_order_release);
  }

  // A number that nobody else gets. No more than kOutstandingMax may be without their Acknowledge.
  uint64_t Take() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // Waits if whoever moves the limit on has been held up so long that all places are taken.
  void Acknowledge(uint64_t number) {
    while (number - Limit() >= kOutstandingMax) {
      MoveLimit();
      std::this_thread::yield();
    }
    done_[number % kOutstandingMax].store(1, std::memory_order_release);
    MoveLimit();
  }

  // All numbers below it have been acknowledged.
  uint64_t Limit() const { return limit_.load(std::memory_order_acquire); }

 private:
  // By one client at a time; what another acknowledges meanwhile, the next call will find.
  void MoveLimit() {
    if (moving_.exchange(1, std::memory_order_acquire) != 0) return;
    uint64_t limit = limit_.load(std::memory_order_relaxed);
    while (done_[limit % kOutstandingMax].load(std::memory_order_acquire) != 0) {
      done_[limit % kOutstandingMax].store(0, std::memory_order_relaxed);
      limit_.store(++limit, std::memory_order_release);  // with the load in Limit
    }
    moving_.store(0, std::memory_order_release);
  }

  alignas(64) std::atomic<uint64_t> next_;
  alignas(64) std::atomic<uint64_t> limit_;
  std::atomic<uint32_t> moving_;
  std::array<std::atomic<uint8_t>, kOutstandingMax> done_;
};

}  // namespace kvd::bench
