#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/admission/client_dialogue.h"
#include "common/base/status_macros.h"
#include "common/layout/superblock.h"
#include "common/transport/verbs/rc_client_channel.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {
namespace {

constexpr size_t kGreetingBytes = 1024;  // room for a message of the handshake
static_assert(sizeof(MessagePrefix) + sizeof(Welcome) <= kGreetingBytes);
constexpr uint64_t kProbeBytes[] = {64, 4096, 65536};

}  // namespace

absl::Status RcClientChannel::Open(const Hello& hello, std::shared_ptr<const AccessKey> key,
                                   int64_t deadline_ns) {
  KVD_RETURN_IF_ERROR(SayHello(hello, std::move(key), deadline_ns));
  if (welcome_.region_address + welcome_.region_bytes < welcome_.region_address) {
    return absl::DataLossError("admitted to a region that wraps around");
  }
  welcome_.credits = credits_ = std::min(welcome_.credits, path_.credits);
  KVD_RETURN_IF_ERROR(MakeFrames());
  KVD_RETURN_IF_ERROR(path_.qp->GrantRemoteRead());  // now, since it has shown itself to be a kvd
  KVD_RETURN_IF_ERROR(Probe(deadline_ns));
  for (uint32_t slot = 0; slot < ClientReceives(path_.credits); ++slot)
    KVD_RETURN_IF_ERROR(PostReceive(slot));
  admitted_ = true;
  return broken_;
}

// To Welcome, with a challenge answered on the way if there is one.
absl::Status RcClientChannel::SayHello(const Hello& hello, std::shared_ptr<const AccessKey> key,
                                       int64_t deadline_ns) {
  KVD_ASSIGN_OR_RETURN(hello_page_,
                       RegisteredPages::Create(path_.pd, 4096, IBV_ACCESS_LOCAL_WRITE));
  message_bytes_ = kGreetingBytes;
  ChannelEnds ends = path_.ends;
  ends.server.queue_pair = path_.qp->PeerNumber();
  ends.client.queue_pair = ends.server.queue_pair == 0 ? 0 : path_.qp->number();
  ClientDialogue dialogue("rdma", ends, hello, std::move(key));
  KVD_RETURN_IF_ERROR(Tell(MessageKind::kHello, std::as_bytes(std::span(&dialogue.hello(), 1))));
  for (;;) {
    KVD_RETURN_IF_ERROR(AwaitAnswer(deadline_ns));
    KVD_ASSIGN_OR_RETURN(const bool admitted, dialogue.Take(greeting_bytes_));
    if (admitted) break;
    greeting_bytes_.clear();
    KVD_RETURN_IF_ERROR(
        Tell(MessageKind::kAnswer, std::as_bytes(std::span(&dialogue.answer(), 1))));
  }
  greeting_ = false;
  welcome_ = dialogue.welcome();
  return absl::OkStatus();
}

// Sends a message of the handshake, with a receive posted for what comes back.
absl::Status RcClientChannel::Tell(MessageKind kind, std::span<const std::byte> body) {
  ibv_sge into{reinterpret_cast<uint64_t>(hello_page_.base() + kGreetingBytes),
               static_cast<uint32_t>(kGreetingBytes), hello_page_.region().lkey()};
  ibv_recv_wr receive{kReceiveBit, nullptr, &into, 1};
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(path_.qp->get(), &receive, &bad) != 0)
    return absl::InternalError("posting a receive failed");
  // Each from a place of its own: the device may have to send the first again.
  std::byte* const from =
      hello_page_.base() + (kind == MessageKind::kHello ? 0 : 2 * kGreetingBytes);
  const MessagePrefix prefix{static_cast<uint8_t>(kind), {}, static_cast<uint32_t>(body.size())};
  std::memcpy(from, &prefix, sizeof(prefix));
  std::memcpy(from + sizeof(prefix), body.data(), body.size());
  sends_.AddSend({from, hello_page_.region().lkey(),
                  static_cast<uint32_t>(sizeof(prefix) + body.size())},
                 false, kKeepAliveCookie);
  return PostSends();
}

absl::Status RcClientChannel::AwaitAnswer(int64_t deadline_ns) {
  while (greeting_bytes_.empty()) {
    Drain();
    if (!greeting_bytes_.empty()) break;
    KVD_RETURN_IF_ERROR(broken_);
    if (NowNs() >= deadline_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat("connected to ", path_.name, ", which does not answer hello"));
    }
    Sleep(deadline_ns);
  }
  return absl::OkStatus();
}

absl::Status RcClientChannel::MakeFrames() {
  message_bytes_ =
      (sizeof(MessagePrefix) + std::max<size_t>(welcome_.frame_bytes, sizeof(CloseNotice)) + 63) /
      64 * 64;
  const size_t slots = ClientReceives(path_.credits) + ClientSendsMax(path_.credits);
  const size_t bytes =
      std::max<size_t>(slots * message_bytes_ + 64, kProbeBytes[std::size(kProbeBytes) - 1]);
  KVD_ASSIGN_OR_RETURN(frames_, RegisteredPages::Create(path_.pd, bytes, IBV_ACCESS_LOCAL_WRITE));
  for (uint32_t slot = ClientSendsMax(path_.credits); slot-- > 0;) free_sends_.push_back(slot);
  return absl::OkStatus();
}

absl::Status RcClientChannel::Probe(int64_t deadline_ns) {
  uint64_t arrived_bytes = 0;
  for (const uint64_t wanted : kProbeBytes) {
    const uint64_t bytes = std::min(wanted, welcome_.region_bytes / 8 * 8);
    const absl::Status read = ProbeRead(bytes, deadline_ns);
    // Flushed, because the server ended the connection: that says nothing of the path.
    if (absl::IsUnavailable(read) && !broken_.ok() && !path_is_dead_) {
      return absl::UnavailableError(
          absl::StrCat("the server ended the connection while it was made: ", read.message()));
    }
    if (absl::IsUnavailable(read) && arrived_bytes == 0) {
      return absl::UnavailableError(
          absl::StrCat("connected to ", path_.name,
                       ", but the first READ is not answered: is UDP port 4791 open on the "
                       "way, does the path lose packets? ",
                       read.message()));
    }
    if (absl::IsUnavailable(read)) {
      return absl::UnavailableError(
          absl::StrCat("READs of ", arrived_bytes, " bytes from ", path_.name, " arrive, of ",
                       bytes, " not: the path drops packets of the active MTU, ", path_.mtu_bytes,
                       "; give every switch and interface on the way an MTU of at least ",
                       path_.mtu_bytes + 128, ". ", read.message()));
    }
    KVD_RETURN_IF_ERROR(read);
    if (arrived_bytes < sizeof(RegionIdentity) && bytes >= sizeof(RegionIdentity))
      KVD_RETURN_IF_ERROR(CheckRegion());
    arrived_bytes = bytes;
  }
  return absl::OkStatus();
}

// Unavailable: it did not arrive.
absl::Status RcClientChannel::ProbeRead(uint64_t bytes, int64_t deadline_ns) {
  probe_done_ = false;
  for (uint64_t at = 0; at < bytes; at += path_.limits.read_piece_bytes) {
    const uint64_t piece = std::min(bytes - at, path_.limits.read_piece_bytes);
    sends_.AddRead({frames_.base() + at, frames_.region().lkey(), static_cast<uint32_t>(piece)},
                   welcome_.region_address + at, welcome_.region_key, kProbeCookie);
  }
  sends_.SignalLast();
  KVD_RETURN_IF_ERROR(PostSends());
  for (;;) {
    Drain();
    if (probe_done_ && broken_.ok()) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(broken_);
    if (NowNs() >= deadline_ns) return absl::UnavailableError("a READ took until the deadline");
    Sleep(deadline_ns);
  }
}

absl::Status RcClientChannel::CheckRegion() {
  RegionIdentity identity;
  std::memcpy(&identity, frames_.base(), sizeof(identity));
  if (identity.magic != kSuperblockMagic || identity.incarnation != welcome_.incarnation ||
      identity.region_bytes != welcome_.region_bytes) {
    return absl::DataLossError("the region is not the one that the server announced");
  }
  return absl::OkStatus();
}

}  // namespace kvd::verbs
