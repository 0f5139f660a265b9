#include "common/transport/shm/shm_server_transport.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/descriptor_closer.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

constexpr int kBacklog = 512;

absl::StatusOr<UniqueFd> Listen(const std::string& path, mode_t mode) {
  KVD_ASSIGN_OR_RETURN(const sockaddr_un address, MakeUnixAddress(path));
  KVD_ASSIGN_OR_RETURN(UniqueFd listener, MakeUnixSocket());
  fcntl(listener.get(), F_SETFL, O_NONBLOCK);
  // bind() gives the file the socket's own mode less the umask, so nobody can connect before it is
  // right.
  fchmod(listener.get(), mode);
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return ErrnoStatus(absl::StrCat("bind ", path));
  }
  if (chmod(path.c_str(), mode) != 0) return ErrnoStatus(absl::StrCat("chmod ", path));
  if (listen(listener.get(), kBacklog) != 0) return ErrnoStatus(absl::StrCat("listen on ", path));
  return listener;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmServerTransport>> ShmServerTransport::Create(
    SocketClaim claim, const Options& options) {
  KVD_RETURN_IF_ERROR(StartDescriptorCloser());
  std::unique_ptr<ShmServerTransport> transport(new ShmServerTransport(std::move(claim), options));
  for (size_t i = 0; i < options.pollers; ++i) {
    KVD_ASSIGN_OR_RETURN(auto endpoint, ShmServerEndpoint::Create());
    transport->endpoints_.push_back(std::move(endpoint));
  }
  return transport;
}

ShmServerTransport::~ShmServerTransport() { StopAccepting(); }

absl::Status ShmServerTransport::Start(Admission& admission) {
  KVD_ASSIGN_OR_RETURN(UniqueFd listener, Listen(claim_.path(), options_.socket_mode));
  struct stat made;
  if (lstat(claim_.path().c_str(), &made) == 0) {
    socket_device_ = made.st_dev;
    socket_inode_ = made.st_ino;
  }
  ShmAcceptor::Options options;
  options.path = claim_.path();
  options.region_fd = options_.region_fd;
  options.admission = &admission;
  for (const auto& endpoint : endpoints_) options.endpoints.push_back(endpoint.get());
  KVD_ASSIGN_OR_RETURN(acceptor_, ShmAcceptor::Start(std::move(options), std::move(listener)));
  return absl::OkStatus();
}

bool ShmServerTransport::SocketIsOurs() const {
  struct stat there;
  return lstat(claim_.path().c_str(), &there) == 0 && there.st_dev == socket_device_ &&
         there.st_ino == socket_inode_;
}

void ShmServerTransport::StopAccepting() {
  if (acceptor_ == nullptr) return;
  // Another kvd's may be there if somebody removed ours by hand.
  if (SocketIsOurs()) unlink(claim_.path().c_str());
  acceptor_.reset();
}

}  // namespace kvd
