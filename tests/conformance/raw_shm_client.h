// A client of the shared-memory transport that keeps to nothing: it writes what a test tells it to.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"
#include "common/transport/shm/session_segment.h"

namespace kvd::test {

class RawShmClient {
 public:
  // Connects and says nothing. Aborts the test program if there is no server.
  explicit RawShmClient(const std::string& path);

  int socket() const { return socket_.get(); }
  void CloseSocket() { socket_.Reset(); }

  int Send(std::span<const std::byte> packet, std::span<const int> fds = {});
  template <typename T>
  int SendObject(const T& object, std::span<const int> fds = {}) {
    return Send(std::as_bytes(std::span(&object, 1)), fds);
  }

  // The next packet, waiting for it; nullopt at the end of the connection.
  std::optional<std::string> Receive();

  // Says hello and maps what comes back. The welcome, also of a refusal; nullopt if the server
  // closed without one.
  std::optional<Welcome> Join(const Hello& hello);

  // Waits for the end of the connection and returns the reason in the segment.
  std::string WaitForEnd();

  SessionHeader& header() { return *reinterpret_cast<SessionHeader*>(segment_.base()); }
  const SessionLayout& layout() const { return layout_; }
  std::byte* slot(uint64_t index) {
    return segment_.base() + layout_.requests_offset() +
           index % layout_.credits * layout_.slot_bytes;
  }

  // Publishes slot `index` with this stamp and length, and rings if the server sleeps (or in any
  // case).
  void Publish(uint64_t index, uint32_t stamp, uint32_t length, bool ring_anyway = false);

 private:
  UniqueFd socket_;
  MappedMemory segment_;
  SessionLayout layout_;
};

}  // namespace kvd::test
