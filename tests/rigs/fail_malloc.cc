// Preloaded to a program (LD_PRELOAD): while the first word of the file $KVD_TEST_MALLOC is n, not
// 0, one in n allocations of as many bytes as the fourth word says, or more, fails, chosen by a
// seed; the second word counts them.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

struct Control {
  std::atomic<uint64_t> one_in;
  std::atomic<uint64_t> failed;
  std::atomic<uint64_t> state;  // the seed, to begin with
  std::atomic<uint64_t> bytes_min;
};

Control* control = nullptr;

__attribute__((constructor)) void MapControl() {
  const char* const path = std::getenv("KVD_TEST_MALLOC");
  const int fd = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* const at = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at != MAP_FAILED) control = static_cast<Control*>(at);
}

bool Fails(size_t bytes) {
  if (control == nullptr || bytes < control->bytes_min.load(std::memory_order_relaxed))
    return false;
  const uint64_t one_in = control->one_in.load(std::memory_order_relaxed);
  if (one_in == 0) return false;
  uint64_t word = control->state.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed);
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  if ((word ^ (word >> 31)) % one_in != 0) return false;
  control->failed.fetch_add(1, std::memory_order_relaxed);
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) { return Fails(bytes) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return Fails(count * bytes) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return Fails(bytes) ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return Fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = Fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
