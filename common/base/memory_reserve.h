// Memory kept for what has to be done even where malloc has none left: to end a session and say
// why, to give back what it held, to write a line of the log.
//
// Programs that link :memory_reserve_new have a `new` that goes on with the reserve where malloc
// fails, in small pieces. Work that can be given up as a whole, and so need not use up what is kept
// for all others, says so (WithoutReserve): there `new` throws std::bad_alloc at once, and whoever
// asked for the work catches that. Elsewhere it throws only for what is larger than a piece may be,
// which is asked for before anything is changed, or once the reserve is used up.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <span>
#include <utility>

namespace kvd {

// First fit over one piece of memory. Thread-safe; asks nobody for memory.
class MemoryReserve {
 public:
  static constexpr size_t kAlignment = 64;
  static constexpr size_t kPieceBytesMax = 16384;

  // `memory`, aligned to kAlignment, outlives what is taken.
  constexpr explicit MemoryReserve(std::span<std::byte> memory) : memory_(memory) {}

  // Aligned to kAlignment. Null: too large, or there is no room.
  void* Take(size_t bytes) noexcept;
  bool Owns(const void* at) const noexcept {
    return at >= memory_.data() && at < memory_.data() + memory_.size();
  }
  void GiveBack(void* at) noexcept;

 private:
  // Before each piece, free or not.
  struct alignas(kAlignment) Piece {
    size_t bytes;  // with this
    Piece* next;   // that is free, by address; of free pieces only
  };

  std::span<std::byte> memory_;
  std::mutex mutex_;
  bool begun_ = false;  // guarded by mutex_, as what follows
  Piece* free_ = nullptr;
};

namespace memory_reserve_internal {
inline constinit thread_local bool denied = false;
}

// Runs `work`, whose allocations fail as soon as malloc does.
template <typename Work>
decltype(auto) WithoutReserve(Work&& work) {
  struct Denied {
    bool before = std::exchange(memory_reserve_internal::denied, true);
    ~Denied() { memory_reserve_internal::denied = before; }
  } const denied;
  return std::forward<Work>(work)();
}

// A part of such work that must not be left half done.
template <typename Work>
decltype(auto) WithReserve(Work&& work) {
  struct Allowed {
    bool before = std::exchange(memory_reserve_internal::denied, false);
    ~Allowed() { memory_reserve_internal::denied = before; }
  } const allowed;
  return std::forward<Work>(work)();
}

}  // namespace kvd
