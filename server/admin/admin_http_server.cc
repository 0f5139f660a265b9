#include "server/admin/admin_http_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

// Nothing is loaded, run or asked but what is this server's own, nobody frames it.
constexpr char kContentSecurityPolicy[] =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

std::string HostOf(const sockaddr* address) {
  AdminAddress peer;
  peer.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&peer.storage, address, peer.length);
  const std::string text = peer.ToText();
  return text.substr(0, text.rfind(':'));
}

// Null: no memory.
MHD_Response* MakeResponse(const AdminReply& reply) {
  MHD_Response* response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return nullptr;
  bool whole = true;
  const auto add = [response, &whole](const char* name, const std::string& value) {
    whole = whole && MHD_add_response_header(response, name, value.c_str()) == MHD_YES;
  };
  add(MHD_HTTP_HEADER_CONTENT_TYPE, reply.content_type);
  add(MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  add("Content-Security-Policy", kContentSecurityPolicy);
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  if (reply.allows_only_get) add(MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  add(MHD_HTTP_HEADER_CONNECTION, "close");
  if (whole) return response;
  MHD_destroy_response(response);
  return nullptr;
}

// The library finds the end of the stream, closes the connection and tells Notify.
void End(int fd) { shutdown(fd, SHUT_RDWR); }

std::string_view Header(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

// The library is C: no exception may pass through it. Where the library itself has no memory for a
// connection, that ends, which is what MHD_NO does.
struct AdminHttpServer::Callbacks {
  // Answers at the end of the headers: whatever body a request has stays unread.
  static MHD_Result Answer(void* server, MHD_Connection* connection, const char* url,
                           const char* method, const char* /*version*/, const char* /*upload*/,
                           size_t* /*upload_bytes*/, void** /*context*/) {
    const auto& self = *static_cast<AdminHttpServer*>(server);
    std::unique_ptr<MHD_Response, ResponseEnd> response;
    unsigned status = MHD_HTTP_SERVICE_UNAVAILABLE;
    try {
      const AdminRequest request{.method = method,
                                 .path = url,
                                 .accept = Header(connection, MHD_HTTP_HEADER_ACCEPT),
                                 .host = Header(connection, MHD_HTTP_HEADER_HOST)};
      const AdminReply reply = self.handler_(request);
      response.reset(MakeResponse(reply));
      if (response != nullptr) status = static_cast<unsigned>(reply.status);
    } catch (const std::bad_alloc&) {
      // Told below.
    } catch (const std::exception&) {
      return MHD_NO;
    }
    return MHD_queue_response(connection, status,
                              (response ? response : self.out_of_memory_).get());
  }

  static void Notify(void* server, MHD_Connection* connection, void** context,
                     MHD_ConnectionNotificationCode what) {
    auto* const self = static_cast<AdminHttpServer*>(server);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      try {
        self->Accepted(connection, context);
      } catch (const std::exception&) {
        *context = nullptr;  // left to the library's own time-out
      }
    } else if (*context != nullptr) {
      auto* const gone = static_cast<Connection*>(*context);
      self->connections_.remove_if([gone](const Connection& c) { return &c == gone; });
    }
  }
};

void AdminHttpServer::ResponseEnd::operator()(MHD_Response* response) const {
  MHD_destroy_response(response);
}

void AdminHttpServer::DaemonStop::operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }

absl::StatusOr<std::unique_ptr<AdminHttpServer>> AdminHttpServer::Start(AdminListener listener,
                                                                        const Options& options,
                                                                        Handler handler) {
  std::unique_ptr<AdminHttpServer> server(
      new AdminHttpServer(listener.address, options, std::move(handler)));
  KVD_RETURN_IF_ERROR(server->Init(std::move(listener)));
  return server;
}

absl::Status AdminHttpServer::Init(AdminListener listener) {
  stop_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.valid()) return ErrnoStatus("eventfd for the admin endpoint");
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options_.timeout).count();
  out_of_memory_.reset(MakeResponse(AdminReply{.status = MHD_HTTP_SERVICE_UNAVAILABLE,
                                               .content_type = "text/plain; charset=utf-8",
                                               .body = "kvd is out of memory\n"}));
  if (out_of_memory_ == nullptr)
    return absl::ResourceExhaustedError("no memory for the admin endpoint");
  // One thread, ours, drives it. Its own limit of connections is above ours, by
  // which the oldest goes and not the newest.
  daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL, 0, nullptr, nullptr, &Callbacks::Answer, this, MHD_OPTION_LISTEN_SOCKET,
      listener.fd.get(), MHD_OPTION_CONNECTION_LIMIT,
      static_cast<unsigned>(2 * options_.connections_max), MHD_OPTION_CONNECTION_TIMEOUT,
      static_cast<unsigned>(seconds), MHD_OPTION_CONNECTION_MEMORY_LIMIT, options_.header_bytes_max,
      MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::Notify, this, MHD_OPTION_END));
  if (daemon_ == nullptr) {
    return absl::ResourceExhaustedError("the admin endpoint cannot start: no descriptors");
  }
  static_cast<void>(listener.fd.Release());  // the library closes it
  daemon_epoll_fd_ = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError("no thread for the admin endpoint: " +
                                        std::string(error.what()));
  }
  pthread_setname_np(thread_.native_handle(), "kvd-admin");
  return absl::OkStatus();
}

AdminHttpServer::~AdminHttpServer() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  daemon_.reset();  // tells Notify of each connection, so before connections_ goes
}

void AdminHttpServer::Run() {
  pollfd wait[] = {{.fd = daemon_epoll_fd_, .events = POLLIN, .revents = 0},
                   {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    poll(wait, 2, TimeoutMs());
    if (wait[1].revents != 0) return;
    EndLate();
    MHD_run(daemon_.get());
  }
}

// Until the library or we have something to do without being asked; -1: never.
int AdminHttpServer::TimeoutMs() const {
  constexpr long long kLongest = 60'000;
  long long timeout = -1;
  MHD_UNSIGNED_LONG_LONG of_library = 0;
  if (MHD_get_timeout(daemon_.get(), &of_library) == MHD_YES) {
    timeout = std::min<long long>(kLongest, static_cast<long long>(of_library));
  }
  for (const Connection& connection : connections_) {
    if (connection.is_ending) continue;
    const long long left = std::max<long long>(
        0,
        std::chrono::ceil<std::chrono::milliseconds>(connection.deadline - Clock::now()).count());
    return static_cast<int>(timeout < 0 ? left : std::min(timeout, left));
  }
  return static_cast<int>(timeout);
}

void AdminHttpServer::Accepted(MHD_Connection* connection, void** context) {
  Connection accepted;
  accepted.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  accepted.address =
      HostOf(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
  accepted.deadline = Clock::now() + options_.timeout;
  EndOldestOf(&accepted.address, options_.connections_per_address_max - 1);
  EndOldestOf(nullptr, options_.connections_max - 1);
  connections_.push_back(std::move(accepted));
  *context = &connections_.back();
}

// Of one address, or (null) of all: leaves the newest `keep`.
void AdminHttpServer::EndOldestOf(const std::string* address, size_t keep) {
  const auto counts = [address](const Connection& c) {
    return !c.is_ending && (address == nullptr || c.address == *address);
  };
  auto excess = std::count_if(connections_.begin(), connections_.end(), counts) -
                static_cast<std::ptrdiff_t>(keep);
  for (Connection& connection : connections_) {
    if (excess <= 0) return;
    if (!counts(connection)) continue;
    End(connection.fd);
    connection.is_ending = true;
    --excess;
  }
}

void AdminHttpServer::EndLate() {
  const Clock::time_point now = Clock::now();
  for (Connection& connection : connections_) {
    if (connection.is_ending || connection.deadline > now) continue;
    End(connection.fd);
    connection.is_ending = true;
  }
}

}  // namespace kvd
