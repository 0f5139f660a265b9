#include "common/transport/shm/descriptor_closer.h"

#include <pthread.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"

namespace kvd {
namespace {

constexpr size_t kWaitingMax = 65536;
// More than fits into a socket's buffer of the usual size.
constexpr int kPacketsMax = 4096;

// Without this a socket may keep close() waiting. The peer can set it again, but then it still
// holds the socket, and the last close is its own.
void CloseForeign(UniqueFd fd) {
  if (!fd.valid()) return;
  const linger off{};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &off, sizeof(off));
}

void CloseForeign(Packet& packet) {
  for (UniqueFd& fd : packet.fds) CloseForeign(std::move(fd));
  while (packet.surplus.count() > 0) CloseForeign(packet.surplus.Take());
}

// The kernel would close what is still in the socket, lingering as it was told to. A packet of 0
// bytes looks like the end but for the credentials that come with every packet.
void CloseSocket(UniqueFd socket) {
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  for (int i = 0; i < kPacketsMax; ++i) {
    std::byte ignored{};
    Packet packet;
    if (ReceivePacket(socket.get(), std::span(&ignored, 1), packet) != 0) break;
    if (packet.bytes == 0 && !packet.credentials) break;
    CloseForeign(packet);
  }
}

class Closer {
 public:
  struct Item {
    int fd;
    bool own_socket;
  };

  static Closer& Get() {
    static auto* closer = new Closer;  // its thread may outlive main
    return *closer;
  }

  absl::Status Start() {
    const std::lock_guard lock(mutex_);
    if (running_) return absl::OkStatus();
    try {
      std::thread thread([this] { Run(); });
      pthread_setname_np(thread.native_handle(), "kvd-close");
      thread.detach();
    } catch (const std::system_error& error) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no thread for closing descriptors: ", error.what()));
    }
    running_ = true;
    return absl::OkStatus();
  }

  // False: it stays with the caller.
  bool Push(Item item) {
    const std::lock_guard lock(mutex_);
    if (!running_ || count_ == kWaitingMax) return false;
    waiting_[(first_ + count_++) % kWaitingMax] = item;
    filled_.notify_one();
    return true;
  }

  std::unique_lock<std::mutex> Hold() { return std::unique_lock(closing_); }

  size_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  void Run() {
    for (;;) {
      Item item{};
      {
        std::unique_lock lock(mutex_);
        filled_.wait(lock, [this] { return count_ > 0; });
        item = waiting_[first_];
        first_ = (first_ + 1) % kWaitingMax;
        --count_;
      }
      const std::lock_guard closing(closing_);
      if (item.own_socket) {
        CloseSocket(UniqueFd(item.fd));
      } else {
        CloseForeign(UniqueFd(item.fd));
      }
    }
  }

  std::mutex closing_;
  std::mutex mutex_;
  std::condition_variable filled_;
  bool running_ = false;
  size_t first_ = 0;
  size_t count_ = 0;
  std::array<Item, kWaitingMax> waiting_;  // not touched before it is needed
};

}  // namespace

absl::Status StartDescriptorCloser() { return Closer::Get().Start(); }

size_t DescriptorsToClose() { return Closer::Get().count(); }

std::unique_lock<std::mutex> HoldDescriptorCloser() { return Closer::Get().Hold(); }

void CloseElsewhere(UniqueFd fd) {
  if (fd.valid() && Closer::Get().Push({fd.get(), false})) [[maybe_unused]]
    const int given = fd.Release();
}

void CloseElsewhere(Packet& packet) {
  for (UniqueFd& fd : packet.fds) CloseElsewhere(std::move(fd));
  while (packet.surplus.count() > 0) CloseElsewhere(packet.surplus.Take());
}

void PeerSocket::Reset() {
  if (!fd_.valid()) return;
  shutdown(fd_.get(), SHUT_RDWR);
  if (Closer::Get().Push({fd_.get(), true})) [[maybe_unused]]
    const int given = fd_.Release();
  fd_.Reset();
}

}  // namespace kvd
