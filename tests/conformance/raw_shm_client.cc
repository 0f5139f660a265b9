#include "tests/conformance/raw_shm_client.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

#include "common/base/check.h"
#include "common/protocol/handshake.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd::test {

RawShmClient::RawShmClient(const std::string& path) : socket_(MakeUnixSocket().value()) {
  const sockaddr_un address = MakeUnixAddress(path).value();
  KVD_CHECK(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
            0);
}

int RawShmClient::Send(std::span<const std::byte> packet, std::span<const int> fds) {
  int error;
  while ((error = SendPacket(socket_.get(), packet, fds)) == EAGAIN) {
    pollfd writable{socket_.get(), POLLOUT, 0};
    poll(&writable, 1, -1);
  }
  return error;
}

std::optional<std::string> RawShmClient::Receive() {
  std::byte buffer[512];
  for (;;) {
    Packet packet;
    const int error = ReceivePacket(socket_.get(), buffer, packet);
    if (error == EAGAIN) {
      pollfd readable{socket_.get(), POLLIN, 0};
      poll(&readable, 1, -1);
      continue;
    }
    if (error != 0 || packet.bytes == 0) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(buffer), packet.bytes);
  }
}

std::optional<Welcome> RawShmClient::Join(const Hello& hello) {
  SendObject(hello);
  std::byte buffer[512];
  Packet packet;
  int error;
  while ((error = ReceivePacket(socket_.get(), buffer, packet)) == EAGAIN) {
    pollfd readable{socket_.get(), POLLIN, 0};
    poll(&readable, 1, -1);
  }
  if (error != 0 || packet.bytes != sizeof(Welcome)) return std::nullopt;
  Welcome welcome;
  std::memcpy(&welcome, buffer, sizeof(welcome));
  if (welcome.status != 0) return welcome;
  KVD_CHECK(packet.fd_count == 2);
  layout_ = SessionLayout::Of(welcome.credits, welcome.frame_bytes);
  MappedMemory::Options options;
  options.fd = packet.fds[1].get();
  options.length_bytes = layout_.segment_bytes();
  options.protection = PROT_READ | PROT_WRITE;
  segment_ = MappedMemory::Map(options).value();
  return welcome;
}

std::string RawShmClient::WaitForEnd() {
  while (Receive().has_value()) continue;
  return segment_.base() == nullptr ? std::string() : std::string(header().text);
}

void RawShmClient::Publish(uint64_t index, uint32_t stamp, uint32_t length, bool ring_anyway) {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(slot(index)))
      .store(uint64_t{length} << 32 | stamp);
  std::atomic_ref<uint32_t> sleeping(header().server_sleeping);
  if (sleeping.exchange(0) != 0 || ring_anyway) SendObject(kDoorbell);
}

}  // namespace kvd::test
