#include "client/internal/fork_guard.h"

#include <pthread.h>

namespace kvd::internal {

std::atomic<uint32_t> fork_generation{0};

namespace {

[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace
}  // namespace kvd::internal
