// The one way to write memory that readers may be looking at: whole words, in an order that readers
// can rely on.
//
// Every reader copies with RacyCopy (common/protocol/racy_copy.h), whose loads come in any order,
// and believes a copy only after its checksum. So single words need no more than to be stored
// whole. What needs order is one step of an update against the next ("the old item is DEAD before
// the new one is LIVE"): OrderStores() stands between the steps. Its partner is the reader's
// LoadFence between two reads that depend on each other (bucket before item, item before the second
// look at the header), or over RDMA the completion of the first READ.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/protocol/racy_copy.h"

namespace kvd {

// Stores an aligned word whole, in no order.
inline void StoreWord(void* at, uint64_t word) {
  __atomic_store_n(static_cast<uint64_t*>(at), word, __ATOMIC_RELAXED);
}

// Stores an aligned word whole, after everything that was stored before it.
inline void StoreWordRelease(void* at, uint64_t word) {
  __atomic_store_n(static_cast<uint64_t*>(at), word, __ATOMIC_RELEASE);
}

#if defined(KVD_STEPPED_STORES)
// Called between any two steps, with the region as readers see it then (tests/model).
inline void (*between_stores)() = nullptr;
#endif

// Everything stored before it is seen no later than anything stored after it. GCC's thread
// sanitizer does not know fences; there every store is an atomic one, which is all that it judges.
inline void OrderStores() {
#if defined(KVD_STEPPED_STORES)
  if (between_stores != nullptr) between_stores();
#endif
#if !defined(KVD_TSAN)
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

// Copies bytes into the region, at any alignment, in no order.
inline void StoreBytes(void* to, const void* from, size_t bytes) {
#if defined(KVD_TSAN)
  auto* target = static_cast<uint8_t*>(to);
  const auto* source = static_cast<const uint8_t*>(from);
  while (bytes != 0) {
    if (reinterpret_cast<uintptr_t>(target) % sizeof(uint64_t) == 0 && bytes >= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, source, sizeof(word));
      StoreWord(target, word);
      target += sizeof(word);
      source += sizeof(word);
      bytes -= sizeof(word);
    } else {
      __atomic_store_n(target++, *source++, __ATOMIC_RELAXED);
      --bytes;
    }
  }
#else
  if (bytes != 0) std::memcpy(to, from, bytes);
#endif
}

}  // namespace kvd
