// The simplest server: answers every frame with itself, pulls what a frame asks it to pull, and
// sleeps whenever the endpoint lets it. On a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/transport/server_endpoint.h"

namespace kvd::test {

// A frame that asks for a pull begins with this; the reply is one of these with `sum` filled in, or
// `failed` set.
struct PullCommand {
  static constexpr uint64_t kMagic = 0x4c4c55504c4c5550;
  uint64_t magic = kMagic;
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t key = 0;
  uint64_t sum = 0;  // Checksum64 with seed 0
  uint64_t failed = 0;
};

class EchoServer {
 public:
  enum class Mode { kBusy, kSleepy };

  // Pulls land in `landing`; without it in memory of this server's own, which not every transport
  // can write.
  EchoServer(ServerEndpoint& endpoint, Mode mode, std::span<std::byte> landing = {});
  ~EchoServer();  // stops the thread

  uint64_t sleeps() const { return sleeps_; }
  uint64_t opened() const { return opened_; }
  uint64_t closed() const { return closed_; }

 private:
  struct PendingPull {
    ChannelId channel{};
    PullCommand command;
    std::span<std::byte> bytes;
    std::vector<std::byte> own;
  };

  void Run();
  void Handle(const ServerEvent& event);
  void Request(const ServerEvent& event);
  void Finish(PendingPull& pull, bool ok);

  ServerEndpoint& endpoint_;
  const Mode mode_;
  const std::span<std::byte> landing_;
  size_t landing_used_ = 0;
  UniqueFd stop_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> sleeps_{0};
  std::atomic<uint64_t> opened_{0};
  std::atomic<uint64_t> closed_{0};
  std::map<uint64_t, PendingPull> pulls_;
  uint64_t next_pull_ = 1;
  std::thread thread_;
};

}  // namespace kvd::test
