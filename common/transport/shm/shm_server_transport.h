// The server's side of the shared-memory transport: a Unix socket, an accepting thread, one
// endpoint per poller.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/shm/shm_acceptor.h"
#include "common/transport/shm/shm_server_endpoint.h"
#include "common/transport/shm/socket_claim.h"

namespace kvd {

class ShmServerTransport final : public ServerTransport {
 public:
  struct Options {
    int region_fd = -1;  // sealed read-only; borrowed for the life of the transport
    size_t pollers = 1;
    mode_t socket_mode = 0600;  // who may connect
  };

  // ResourceExhausted: no descriptors, or no thread for closing those of clients.
  static absl::StatusOr<std::unique_ptr<ShmServerTransport>> Create(SocketClaim claim,
                                                                    const Options& options);

  // The Admission given to Start outlives this object.
  ~ShmServerTransport() override;

  // Errors: what bind and listen say, with the path.
  absl::Status Start(Admission& admission) override;
  ServerEndpoint& endpoint(size_t poller) override { return *endpoints_.at(poller); }

  // Also removes the socket, so that clients learn at once that nobody is there.
  void StopAccepting() override;
  std::string Describe() const override { return "shared memory at " + claim_.path(); }

 private:
  ShmServerTransport(SocketClaim claim, const Options& options)
      : claim_(std::move(claim)), options_(options) {}

  // The file of the listening socket, if it is still the one that this transport made.
  bool SocketIsOurs() const;

  SocketClaim claim_;
  Options options_;
  std::vector<std::unique_ptr<ShmServerEndpoint>> endpoints_;
  std::unique_ptr<ShmAcceptor> acceptor_;
  dev_t socket_device_ = 0;
  ino_t socket_inode_ = 0;
};

}  // namespace kvd
