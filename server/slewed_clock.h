// The time by which items expire: Unix time at the start, then as steady as a clock can be.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "common/base/clock.h"

namespace kvd {

// Follows the monotonic clock, and the wall clock only slowly: where the two part, the difference
// is made up at kSlewPercent of the time that passes. So a wall clock that jumps expires nothing at
// once and keeps nothing for ever: a span of time is as long by this clock as it really is, to
// within kSlewPercent.
//
// Thread-safe; no call blocks. Never goes back.
class SlewedClock final : public Clock {
 public:
  static constexpr int64_t kSlewPercent = 1;

  // `machine` outlives this clock. Its Unix time now is where this clock begins.
  explicit SlewedClock(const Clock& machine);

  int64_t NowMonotonicNs() const override { return machine_.NowMonotonicNs(); }
  int64_t NowUnixUs() const override;

 private:
  // Where the line that is followed at present begins.
  struct Base {
    int64_t monotonic_us = 0;
    int64_t unix_us = 0;
    int64_t behind_us = 0;  // by so much the wall clock was ahead; negative: it was behind
  };

  static int64_t UnixUsAt(const Base& base, int64_t monotonic_us);
  Base ReadBase() const;
  void Rebase(int64_t monotonic_us) const;

  const Clock& machine_;
  mutable std::mutex rebasing_;
  // A sequence lock: odd while the words are being changed. Every word is an atomic of its own; the
  // release stores of the words are partners of the acquire loads in ReadBase.
  mutable std::atomic<uint64_t> sequence_{0};
  mutable std::atomic<int64_t> monotonic_us_{0};
  mutable std::atomic<int64_t> unix_us_{0};
  mutable std::atomic<int64_t> behind_us_{0};
};

}  // namespace kvd
