// Tells a process from its fork()ed children without a system call per look.
#pragma once

#include <cstdint>

namespace kvd {

// A number that is another one in a child of fork() than in its parent. Any thread; costs one load.
uint32_t ForkGeneration();

}  // namespace kvd
