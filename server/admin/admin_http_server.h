// HTTP for the admin endpoint: one thread that answers, and limits that nobody gets past.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "server/admin/admin_address.h"
#include "server/admin/admin_pages.h"

struct MHD_Connection;
struct MHD_Daemon;
struct MHD_Response;

namespace kvd {

// Answers one request a connection and closes it. A connection that has not sent its request and
// taken its answer within the time-out is closed; where there are too many, each new one closes the
// oldest, so that nobody keeps others out by holding connections.
class AdminHttpServer {
 public:
  struct Options {
    size_t connections_max = 16;
    size_t connections_per_address_max = 8;
    size_t header_bytes_max = 16384;  // of a request, line and headers together; beyond it: 431
    std::chrono::milliseconds timeout{5000};
  };
  // Called on the server's thread.
  using Handler = std::function<AdminReply(const AdminRequest&)>;

  // ResourceExhausted: no descriptors or no thread.
  static absl::StatusOr<std::unique_ptr<AdminHttpServer>> Start(AdminListener listener,
                                                                const Options& options,
                                                                Handler handler);
  // Ends the thread, and all connections with it.
  ~AdminHttpServer();
  AdminHttpServer(const AdminHttpServer&) = delete;
  AdminHttpServer& operator=(const AdminHttpServer&) = delete;

  const AdminAddress& address() const { return address_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct ResponseEnd {
    void operator()(MHD_Response* response) const;
  };
  struct DaemonStop {
    void operator()(MHD_Daemon* daemon) const;
  };
  struct Connection {
    int fd = -1;
    std::string address;  // without the port
    Clock::time_point deadline;
    bool is_ending = false;
  };
  using Connections = std::list<Connection>;

  // What libmicrohttpd calls.
  struct Callbacks;

  AdminHttpServer(const AdminAddress& address, const Options& options, Handler handler)
      : address_(address), options_(options), handler_(std::move(handler)) {}

  absl::Status Init(AdminListener listener);
  void Run();
  int TimeoutMs() const;
  void Accepted(MHD_Connection* connection, void** context);
  void EndOldestOf(const std::string* address, size_t keep);
  void EndLate();

  const AdminAddress address_;
  const Options options_;
  const Handler handler_;
  Connections connections_;                                   // the oldest first; the thread's
  UniqueFd stop_;                                             // eventfd
  std::unique_ptr<MHD_Response, ResponseEnd> out_of_memory_;  // made when there was some
  std::unique_ptr<MHD_Daemon, DaemonStop> daemon_;
  int daemon_epoll_fd_ = -1;
  std::thread thread_;
};

}  // namespace kvd
