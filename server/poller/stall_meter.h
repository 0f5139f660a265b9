// Finds out when a poller was awake and had no processor: another thread ran on it, the process was
// stopped, its container had used up its share, the virtual machine stood still, or the kernel made
// the thread wait (for a page, for a log that nobody reads).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace kvd {

// What the thread spent of the wall clock's time and of its own processor's is compared every now
// and then, so nothing of it is taken for long work. Times are monotonic. One thread.
class StallMeter {
 public:
  // What is shorter is none. Nothing that a poller does takes so long but what is slow by itself.
  static constexpr int64_t kStallNs = 1'000'000;
  // A look at the thread's processor time is a call of the kernel.
  static constexpr int64_t kBetweenLooksNs = 1'000'000;

  // `processor_ns`: the processor time that the calling thread has had so far.
  explicit StallMeter(std::function<int64_t()> processor_ns)
      : processor_ns_(std::move(processor_ns)) {}

  bool IsDue(int64_t now_ns) const { return now_ns >= due_ns_; }

  // For how long the thread had no processor while it was awake, since the last look; 0: less than
  // kStallNs. The first look is where it begins.
  int64_t Look(int64_t now_ns);

  // It slept from one time to the other on purpose, and nothing but `until_ns` would have woken it
  // then (INT64_MAX: nothing). Returns by how much it came later; 0: less than kStallNs.
  int64_t Slept(int64_t from_ns, int64_t to_ns, int64_t until_ns);

 private:
  const std::function<int64_t()> processor_ns_;
  bool has_looked_ = false;
  int64_t due_ns_ = 0;
  // At the last look; what was slept since then is added to the first.
  int64_t looked_ns_ = 0;
  int64_t processor_had_ns_ = 0;
};

// Of the calling thread, by the kernel's count.
int64_t ThreadProcessorNs();

}  // namespace kvd
