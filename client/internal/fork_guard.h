// Tells a process from its fork()ed children without a system call per look.
#pragma once

#include <atomic>
#include <cstdint>

namespace kvd {

namespace internal {
extern std::atomic<uint32_t> fork_generation;
}

// A number that is another one in a child of fork() than in its parent. Any thread; costs one load.
inline uint32_t ForkGeneration() { return internal::fork_generation.load(std::memory_order_relaxed); }

}  // namespace kvd
