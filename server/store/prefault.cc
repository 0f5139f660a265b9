#include "server/store/prefault.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23
#endif

namespace kvd {
namespace {

constexpr uint64_t kChunkBytes = 16 * kMiB;

// Gives pages to one chunk. 0 or errno. Kernels before 5.14 do not know MADV_POPULATE_WRITE; there
// the file's blocks are allocated instead, which fails with an error just as well.
int PopulateChunk(const PrefaultOptions& options, uint64_t offset, uint64_t bytes) {
  while (true) {
    if (::madvise(options.base + offset, bytes, MADV_POPULATE_WRITE) == 0) return 0;
    if (errno == EINVAL) {
      if (::fallocate(options.fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0)
        return 0;
    }
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
}

// What the threads share.
struct Shared {
  std::atomic<uint64_t> next{0};  // relaxed: only hands out chunks
  std::atomic<bool> over{false};  // relaxed: only a hint to stop early
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t done_bytes = 0;
  uint32_t running = 0;
  int error_number = 0;
  bool cancelled = false;
};

void PopulateChunks(const PrefaultOptions& options, uint64_t chunk_bytes, Shared& shared) {
  while (!shared.over.load(std::memory_order_relaxed)) {
    if (options.cancelled && options.cancelled()) {
      const std::lock_guard lock(shared.mutex);
      shared.cancelled = true;
      shared.over.store(true, std::memory_order_relaxed);
      break;
    }
    const uint64_t offset = shared.next.fetch_add(chunk_bytes, std::memory_order_relaxed);
    if (offset >= options.bytes) break;
    const uint64_t bytes = std::min(chunk_bytes, options.bytes - offset);
    const int error_number = PopulateChunk(options, offset, bytes);
    const std::lock_guard lock(shared.mutex);
    if (error_number != 0) {
      shared.error_number = error_number;
      shared.over.store(true, std::memory_order_relaxed);
    } else {
      shared.done_bytes += bytes;
    }
    shared.changed.notify_one();
  }
  const std::lock_guard lock(shared.mutex);
  --shared.running;
  shared.changed.notify_one();
}

void ReportUntilDone(const PrefaultOptions& options, Shared& shared) {
  std::unique_lock lock(shared.mutex);
  uint64_t reported = 0;
  while (true) {
    shared.changed.wait(lock, [&] { return shared.done_bytes != reported || shared.running == 0; });
    const bool over = shared.running == 0;
    if (shared.done_bytes != reported) {
      reported = shared.done_bytes;
      lock.unlock();
      if (options.progress) options.progress(reported, options.bytes);
      lock.lock();
    }
    if (over && shared.done_bytes == reported) return;
  }
}

}  // namespace

absl::Status Prefault(const PrefaultOptions& options) {
  const uint64_t chunk_bytes = std::max(kChunkBytes, options.page_bytes);
  const uint64_t chunks = (options.bytes + chunk_bytes - 1) / chunk_bytes;
  const uint64_t wanted =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  const uint32_t threads = static_cast<uint32_t>(std::min(wanted, chunks));
  Shared shared;
  shared.running = threads;
  std::vector<std::thread> pool;
  pool.reserve(threads);
  for (uint32_t i = 0; i < threads; ++i) {
    try {
      pool.emplace_back([&] { PopulateChunks(options, chunk_bytes, shared); });
    } catch (const std::system_error&) {
      // The threads that there are do it all, or this one does.
      {
        const std::lock_guard lock(shared.mutex);
        shared.running -= threads - std::max(i, 1u);
      }
      if (i == 0) PopulateChunks(options, chunk_bytes, shared);
      break;
    }
  }
  ReportUntilDone(options, shared);
  for (std::thread& thread : pool) thread.join();
  if (shared.cancelled) return absl::CancelledError("given up while memory was being touched");
  if (shared.error_number == 0) return absl::OkStatus();
  return ErrnoStatus(
      shared.error_number,
      ToStd(absl::StrCat("touching ", FormatBytes(options.bytes), " of memory in pages of ",
                         FormatBytes(options.page_bytes))));
}

}  // namespace kvd
