#include "tests/linearizability/jumping_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/unique_fd.h"

namespace kvd::test {
namespace {

constexpr const char* kPreload = "LD_PRELOAD";
constexpr const char* kOffset = "KVD_TEST_CLOCK";
constexpr uint64_t kJumpNsMax = uint64_t{86'400'000'000'000};

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A file in memory that is there for as long as this process.
std::string MakeOffsetFile(const char* name) {
  const int fd = memfd_create(name, 0);
  if (fd < 0 || ftruncate(fd, sizeof(int64_t)) != 0) Fail("history_recorder: a file for the clock");
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
}

std::atomic<int64_t>* Map(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  void* const at = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) Fail(path.c_str());
  return static_cast<std::atomic<int64_t>*>(at);
}

}  // namespace

void JumpingClock::TakePartIn(const std::string& library, char** argv) {
  if (std::getenv(kOffset) != nullptr) return;
  if (library.empty()) {
    std::fprintf(stderr, "history_recorder: --clock_jumps needs --clock_library\n");
    std::exit(1);
  }
  setenv(kPreload, library.c_str(), 1);
  setenv(kOffset, MakeOffsetFile("clients").c_str(), 1);
  execv("/proc/self/exe", argv);
  Fail("history_recorder: exec");
}

std::unique_ptr<JumpingClock> JumpingClock::Create(const std::string& library) {
  std::unique_ptr<JumpingClock> made(new JumpingClock);
  made->library_ = library;
  made->clients_path_ = std::getenv(kOffset);
  made->kvd_path_ = MakeOffsetFile("kvd");
  made->clients_ = Map(made->clients_path_);
  made->kvd_ = Map(made->kvd_path_);
  return made;
}

JumpingClock::~JumpingClock() {
  munmap(clients_, sizeof(*clients_));
  munmap(kvd_, sizeof(*kvd_));
}

void JumpingClock::BeginOfKvd() const { setenv(kOffset, kvd_path_.c_str(), 1); }
void JumpingClock::EndOfKvd() const { setenv(kOffset, clients_path_.c_str(), 1); }

void JumpingClock::Jump(Random& random) {
  const auto any = [&] {
    return static_cast<int64_t>(random.Uniform(2 * kJumpNsMax)) - static_cast<int64_t>(kJumpNsMax);
  };
  const uint64_t whose = random.Uniform(3);
  if (whose != 0) clients_->store(any());
  if (whose != 1) kvd_->store(any());
}

}  // namespace kvd::test
