#include "common/transport/shm/client_handshake.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/admission/client_dialogue.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/user_namespace.h"
#include "common/transport/sealed_memory.h"
#include "common/transport/shm/default_path.h"
#include "common/transport/shm/peer_credentials.h"
#include "common/transport/shm/region_window.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

int64_t LeftNs(int64_t deadline_ns) {
  return std::max<int64_t>(0, deadline_ns - RealClock::Get().NowMonotonicNs());
}

absl::Status NoAnswer(const std::string& path) {
  return absl::DeadlineExceededError(
      absl::StrCat("kvd at ", path, " did not answer in time, so it may be stopped or overloaded"));
}

absl::Status NoSocketOfKvd(const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat(path, " is not a socket of kvd; name the one that kvd listens at, its --shm"));
}

bool IsAnythingElse(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 && !S_ISSOCK(facts.st_mode);
}

// The pid of who holds the lock beside the socket; empty if nobody does, or that cannot be seen
// from here. Taking the lock to find out would refuse a kvd that starts in the same moment.
std::string PidOfLockHolder(const std::string& path) {
  const std::string lock_path = path + ".lock";  // as SocketClaim has it
  std::string owner;
  struct stat facts;
  if (!(std::ifstream(lock_path) >> owner) || stat(lock_path.c_str(), &facts) != 0) return "";
  const std::string inode = absl::StrCat(":", facts.st_ino);
  std::ifstream locks("/proc/locks");
  std::string line;
  while (std::getline(locks, line)) {
    std::istringstream words(line);
    std::string number, kind, obligation, mode, pid, place;
    words >> number >> kind >> obligation >> mode >> pid >> place;
    if (kind == "FLOCK" && pid == owner && place.ends_with(inode)) return owner;
  }
  return "";
}

absl::Status NobodyListens(const std::string& path, std::string_view wrong,
                           const std::string& hint) {
  if (const std::string pid = PidOfLockHolder(path); !pid.empty()) {
    return absl::UnavailableError(absl::StrCat("nobody listens at ", path, " yet: a kvd (pid ", pid,
                                               ") is starting there; wait for it"));
  }
  return absl::UnavailableError(absl::StrCat(ToAbsl(wrong), " at ", path, "; ", hint));
}

absl::Status ConnectError(int error, const std::string& path) {
  const std::string hint = absl::StrCat("is kvd running? start it with: kvd --shm=", path);
  switch (error) {
    case ENOENT:
      return NobodyListens(path, "no socket", hint);
    case ECONNREFUSED:  // also for a file or directory
      return IsAnythingElse(path) ? NoSocketOfKvd(path)
                                  : NobodyListens(path, "nobody listens", hint);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat("may not open ", path,
                       "; run as the user who started kvd, or ask for access to that file"));
    case EPROTOTYPE:
    case ENOTSOCK:
    case ENOTDIR:
      return NoSocketOfKvd(path);
    case EAGAIN:
      return NoAnswer(path);
    default:
      return ErrnoStatus(error, absl::StrCat("connect to ", path));
  }
}

absl::Status ConnectSocket(int fd, const std::string& path, int64_t deadline_ns) {
  KVD_ASSIGN_OR_RETURN(const sockaddr_un address, MakeUnixAddress(path));
  KVD_RETURN_IF_ERROR(CheckDefaultDirectory(path));
  // A blocking connect waits for room in the listener's queue; only SO_SNDTIMEO bounds that wait
  // (zero would mean never).
  const int64_t left_us = std::max<int64_t>(1, LeftNs(deadline_ns) / 1000);
  const timeval timeout{left_us / 1'000'000, left_us % 1'000'000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  while (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (errno != EINTR) return ConnectError(errno, path);
    if (LeftNs(deadline_ns) == 0) return NoAnswer(path);
  }
  return absl::OkStatus();
}

absl::Status AwaitPacket(int fd, const std::string& path, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ns = LeftNs(deadline_ns);
    const timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    pollfd socket{fd, POLLIN, 0};
    const int ready = ppoll(&socket, 1, &timeout, nullptr);
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return NoAnswer(path);
    if (errno != EINTR) return ErrnoStatus("poll of a socket");
  }
}

// The server's next packet, whatever is in it.
absl::Status AwaitAnswer(int fd, const std::string& path, int64_t deadline_ns,
                         std::span<std::byte> frame, Packet& packet) {
  KVD_RETURN_IF_ERROR(AwaitPacket(fd, path, deadline_ns));
  int error = ReceivePacket(fd, frame, packet);
  // A server that closed before it read what was sent: the error comes first, then what it has
  // sent.
  if (error == ECONNRESET || error == EPIPE) error = ReceivePacket(fd, frame, packet);
  if (error == 0 && packet.bytes != 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("kvd at ", path, " closed the connection during the handshake"));
}

absl::StatusOr<MappedMemory> MapSession(const UniqueFd& fd, const SessionLayout& layout) {
  if (absl::Status sealed = CheckSealedMemory(fd.get(), layout.segment_bytes()); !sealed.ok()) {
    return absl::DataLossError(absl::StrCat("the session's descriptor: ", sealed.message()));
  }
  MappedMemory::Options options;
  options.fd = fd.get();
  options.length_bytes = layout.segment_bytes();
  options.protection = PROT_READ | PROT_WRITE;
  return MappedMemory::Map(options);
}

// A key that is right fails where the two sides do not see each other's user as it sees itself.
absl::Status InNamespace(const absl::Status& refused) {
  if (!absl::IsPermissionDenied(refused)) return refused;
  return absl::PermissionDeniedError(
      absl::StrCat(refused.message(),
                   "; this process is in a user namespace of its own, and a key over shared memory "
                   "needs kvd in the same one: run both in one, or connect by RDMA"));
}

}  // namespace

absl::StatusOr<ShmAdmission> ShmHandshake(const std::string& path, const Hello& hello,
                                          std::shared_ptr<const AccessKey> key,
                                          int64_t deadline_ns) {
  ShmAdmission admission;
  KVD_ASSIGN_OR_RETURN(admission.socket, MakeUnixSocket());
  const int fd = admission.socket.get();
  KVD_RETURN_IF_ERROR(ConnectSocket(fd, path, deadline_ns));
  const UserNamespace here = UserNamespace::OfThisProcess();
  ChannelEnds ends;
  ends.client.user = geteuid();
  ends.server.user = PeerCredentialsOf(fd, here).user;
  const bool has_key = key != nullptr;
  ClientDialogue dialogue("shm", ends, hello, std::move(key));
  // A server that refuses at once may have closed already; its Welcome is there all the same.
  SendPacket(fd, std::as_bytes(std::span(&dialogue.hello(), 1)));
  std::optional<Packet> answer;
  for (;;) {
    answer.emplace();
    std::byte frame[sizeof(Welcome) + 1];
    KVD_RETURN_IF_ERROR(AwaitAnswer(fd, path, deadline_ns, frame, *answer));
    const absl::StatusOr<bool> admitted = dialogue.Take(std::span(frame).first(answer->bytes));
    if (!admitted.ok()) {
      return has_key && !here.users.all_mapped ? InNamespace(admitted.status()) : admitted.status();
    }
    if (*admitted) break;
    SendPacket(fd, std::as_bytes(std::span(&dialogue.answer(), 1)));
  }
  Packet& packet = *answer;
  admission.welcome = dialogue.welcome();
  if (packet.fds_lost) {
    return absl::ResourceExhaustedError(
        "this process has no descriptors left for a session (ulimit -n)");
  }
  if (packet.fd_count != 2 || admission.welcome.credits > kCreditsMax) {
    return absl::DataLossError(absl::StrCat("kvd at ", path, " admitted with ", packet.fd_count,
                                            " descriptors and ", admission.welcome.credits,
                                            " credits"));
  }
  admission.layout = SessionLayout::Of(admission.welcome.credits, admission.welcome.frame_bytes);
  KVD_ASSIGN_OR_RETURN(admission.region, MapRegionWindow(packet.fds[0], admission.welcome));
  KVD_ASSIGN_OR_RETURN(admission.segment, MapSession(packet.fds[1], admission.layout));
  return admission;
}

}  // namespace kvd
