// A client's buffers when the server does not read its socket.
#include "common/transport/shm/pull_buffers.h"

#include <sys/socket.h>

#include <cstring>
#include <optional>

#include "common/transport/shm/session_segment.h"
#include "common/transport/shm/unix_socket.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

class PausedServer {
 public:
  PausedServer() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    client = UniqueFd(ends[0]);
    server_ = UniqueFd(ends[1]);
  }

  void Fill() {
    const std::byte bell{kDoorbell};
    while (SendPacket(client.get(), std::span(&bell, 1)) == 0) continue;
  }

  // The next notice; nullopt if there is none.
  std::optional<SegmentNotice> Next() {
    for (;;) {
      std::byte bytes[sizeof(SegmentNotice)];
      Packet packet;
      if (ReceivePacket(server_.get(), bytes, packet) != 0) return std::nullopt;
      if (packet.bytes != sizeof(bytes)) continue;
      SegmentNotice notice;
      std::memcpy(&notice, bytes, sizeof(notice));
      return notice;
    }
  }

  UniqueFd client;

 private:
  UniqueFd server_;
};

}  // namespace

TEST_CASE("PullBuffers: a server that does not read is told later what was freed") {
  PausedServer server;
  PullBuffers buffers(server.client.get());
  const TransferBuffer first = buffers.Allocate(4096).value();
  server.Fill();
  buffers.Free(first);
  KVD_REQUIRE_CODE(buffers.Allocate(4096), kDeadlineExceeded);
  REQUIRE(server.Next()->segment_id == first.key);
  CHECK_FALSE(server.Next().has_value());

  const TransferBuffer second = buffers.Allocate(4096).value();
  const auto forget = server.Next();
  REQUIRE(forget.has_value());
  CHECK(forget->action == static_cast<uint32_t>(SegmentAction::kForget));
  CHECK(forget->segment_id == first.key);
  CHECK(server.Next()->segment_id == second.key);
}

TEST_CASE("PullBuffers: what the server does not know to be free counts") {
  PausedServer server;
  PullBuffers buffers(server.client.get());
  std::vector<TransferBuffer> all;
  for (uint32_t i = 0; i < kPullSegmentsMax; ++i) all.push_back(buffers.Allocate(4096).value());
  server.Fill();
  buffers.Free(all.front());
  KVD_REQUIRE_CODE(buffers.Allocate(4096), kResourceExhausted);
  while (server.Next().has_value()) continue;
  KVD_REQUIRE_OK(buffers.Allocate(4096));
}

}  // namespace kvd::test
