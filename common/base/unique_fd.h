// Ownership of a file descriptor.
#pragma once

#include <unistd.h>

#include <utility>

namespace kvd {

// Owns at most one descriptor and closes it when it goes. A moved-from object owns none (-1).
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}  // takes ownership; any negative value is none
  ~UniqueFd() { Reset(); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Hands the descriptor to the caller, who closes it.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }

  // Closes what is owned and takes `fd`. close() is never repeated after EINTR: on Linux the
  // descriptor is gone by then and another thread may have its number.
  void Reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old >= 0) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace kvd
