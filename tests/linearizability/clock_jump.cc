// Preloaded to a program (LD_PRELOAD): its Unix time is that of the machine and so many nanoseconds
// as the file $KVD_TEST_CLOCK begins with, which may change at any time. Monotonic clocks stay as
// they are, as with a real one that is set.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const std::atomic<int64_t>* MapOffset() {
  static const std::atomic<int64_t> zero{0};
  const char* const path = std::getenv("KVD_TEST_CLOCK");
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return &zero;
  void* const at = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return at == MAP_FAILED ? &zero : static_cast<const std::atomic<int64_t>*>(at);
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  using Function = int (*)(clockid_t, timespec*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  static const std::atomic<int64_t>* const offset_ns = MapOffset();
  const int result = real(clock, time);
  if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return result;
  const int64_t now_ns = int64_t{time->tv_sec} * 1'000'000'000 + time->tv_nsec + offset_ns->load();
  time->tv_sec = now_ns / 1'000'000'000;
  time->tv_nsec = now_ns % 1'000'000'000;
  return 0;
}
