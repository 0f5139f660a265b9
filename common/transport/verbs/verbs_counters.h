// What a server's verbs transport counts, for statistics. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvd::verbs {

struct Counters {
  std::atomic<uint64_t> connects{0};           // asked for
  std::atomic<uint64_t> rejects{0};            // refused before a hello
  std::atomic<uint64_t> refusals{0};           // refused after it
  std::atomic<uint64_t> sessions{0};           // admitted
  std::atomic<uint64_t> completion_errors{0};  // first causes
  std::atomic<uint64_t> flushed{0};            // completions that only follow one
  std::atomic<uint64_t> protocol_errors{0};    // peers that broke the protocol
  std::atomic<uint64_t> keep_alives{0};
  std::atomic<uint64_t> pulls{0};
  std::atomic<uint64_t> pulled_bytes{0};
  std::atomic<uint64_t> async_events{0};
};

inline void Count(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

}  // namespace kvd::verbs
