// A client that keeps to no rules: a connection to the server under test, and whatever bytes and
// READs a case wants.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/transport/verbs/client_path.h"
#include "common/transport/verbs/memory_region.h"
#include "common/transport/verbs/wire.h"
#include "tests/support/status_testing.h"

namespace kvd::test {

class RawVerbsClient {
 public:
  static constexpr size_t kSlotBytes = 8192;
  static constexpr size_t kReceives = 16;

  explicit RawVerbsClient(verbs::ClientPath path) : path_(std::move(path)) {
    auto pages = verbs::RegisteredPages::Create(path_.pd, kSlotBytes * (kReceives + 1),
                                                IBV_ACCESS_LOCAL_WRITE);
    KVD_REQUIRE_OK(pages);
    pages_ = *std::move(pages);
  }
  ~RawVerbsClient() { path_.qp->Destroy(); }

  verbs::ClientPath& path() { return path_; }
  std::byte* scratch() { return pages_.base() + kSlotBytes * kReceives; }

  void PostReceives(size_t count = kReceives) {
    for (size_t i = 0; i < count; ++i) {
      ibv_sge into{reinterpret_cast<uint64_t>(pages_.base() + i * kSlotBytes), kSlotBytes,
                   pages_.region().lkey()};
      ibv_recv_wr receive{i, nullptr, &into, 1};
      ibv_recv_wr* bad = nullptr;
      REQUIRE(ibv_post_recv(path_.qp->get(), &receive, &bad) == 0);
    }
  }

  // Sends these bytes as one message and does not look whether it arrives.
  int PostSend(std::span<const std::byte> bytes) {
    std::memcpy(scratch(), bytes.data(), bytes.size());
    ibv_sge from{reinterpret_cast<uint64_t>(scratch()), static_cast<uint32_t>(bytes.size()),
                 pages_.region().lkey()};
    ibv_send_wr send{};
    send.wr_id = 1000;
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(path_.qp->get(), &send, &bad);
  }

  int PostMessage(verbs::MessageKind kind, std::span<const std::byte> body) {
    std::vector<std::byte> bytes(sizeof(verbs::MessagePrefix) + body.size());
    const verbs::MessagePrefix prefix{
        static_cast<uint8_t>(kind), {}, static_cast<uint32_t>(body.size())};
    std::memcpy(bytes.data(), &prefix, sizeof(prefix));
    std::copy(body.begin(), body.end(), bytes.begin() + sizeof(prefix));
    return PostSend(bytes);
  }

  // READs or WRITEs `bytes` there; how the device completed it.
  ibv_wc_status Access(ibv_wr_opcode opcode, uint64_t address, uint32_t key, uint32_t bytes) {
    ibv_sge local{reinterpret_cast<uint64_t>(scratch()), bytes, pages_.region().lkey()};
    ibv_send_wr request{};
    request.wr_id = 2000;
    request.sg_list = &local;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = key;
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(path_.qp->get(), &request, &bad) == 0);
    for (;;) {
      const ibv_wc done = Complete();
      if (done.wr_id == 2000) return done.status;
    }
  }

  // The next completion, waiting for it without bound.
  ibv_wc Complete() {
    ibv_wc done{};
    while (path_.cq->Poll({&done, 1}) == 0) sched_yield();
    return done;
  }

  // The next message that arrives; empty: the connection ended first.
  std::span<const std::byte> Receive() {
    for (;;) {
      const ibv_wc done = Complete();
      if (done.wr_id < kReceives) {
        if (done.status != IBV_WC_SUCCESS) return {};
        return {pages_.base() + done.wr_id * kSlotBytes, done.byte_len};
      }
      if (done.status != IBV_WC_SUCCESS && done.status != IBV_WC_WR_FLUSH_ERR) continue;
    }
  }

  // Says hello and takes the welcome, with so many receives posted.
  Welcome BeAdmitted(const Hello& hello, size_t receives = kReceives) {
    PostReceives(receives);
    REQUIRE(PostMessage(verbs::MessageKind::kHello, std::as_bytes(std::span(&hello, 1))) == 0);
    const auto message = Receive();
    Welcome welcome{};
    REQUIRE(message.size() == sizeof(verbs::MessagePrefix) + sizeof(welcome));
    std::memcpy(&welcome, message.data() + sizeof(verbs::MessagePrefix), sizeof(welcome));
    return welcome;
  }

  // The reason in the closing notice that the server sends next, skipping other messages; empty if
  // it sends none.
  std::string CloseReason() {
    for (;;) {
      const auto message = Receive();
      if (message.empty()) return "";
      verbs::MessageKind kind{};
      std::span<const std::byte> body;
      KVD_REQUIRE_OK(verbs::ParseMessage(message, kind, body));
      if (kind == verbs::MessageKind::kClose)
        return std::string(verbs::CloseStatus(body).message());
    }
  }

 private:
  verbs::ClientPath path_;
  verbs::RegisteredPages pages_;
};

}  // namespace kvd::test
