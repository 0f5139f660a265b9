// Requests to the admin endpoint: every one of them has an answer or an end, and an answer is HTTP.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "common/base/statistic_list.h"
#include "server/admin/admin_http_server.h"
#include "server/admin/admin_pages.h"
#include "tests/fuzz/fuzz.h"

namespace kvd::fuzz {
namespace {

const std::string kMarkUp = "<kvd-fuzz";

AdminSource Source(std::string name) {
  return {.statistics =
              [] {
                StatisticList list;
                list.Gauge("items", 7, {.help = "Items."});
                list.Text("version", "1");
                return list;
              },
          .sessions =
              [name] {
                AdminSession session;
                session.name = name;
                return std::vector<AdminSession>{session};
              }};
}

// The pages alone: with every text that a client can have put into them.
void Page(Feed& feed) {
  AdminPages pages({.only_this_host = feed.Below(2) == 1});
  const std::string name = kMarkUp + std::string(feed.Text(feed.Take<uint8_t>()));
  if (feed.Below(4) != 0) pages.SetServing(Source(name));
  AdminRequest request;
  constexpr std::string_view kPaths[] = {"/",       "/metrics",     "/livez",
                                         "/readyz", "/status.json", "/style.css"};
  request.method = feed.Below(4) == 0 ? feed.Text(8) : "GET";
  request.path = feed.Below(4) == 0 ? feed.Text(feed.Take<uint8_t>()) : kPaths[feed.Below(6)];
  request.host = feed.Below(2) == 0 ? "localhost" : feed.Text(feed.Take<uint8_t>());
  request.accept = feed.RestAsText();
  const AdminReply reply = pages.Answer(request);
  Require(reply.status >= 200 && reply.status < 600, "a status that HTTP has");
  Require(reply.content_type.find('\n') == std::string::npos, "one header a line");
  if (reply.content_type.find("html") == std::string::npos) return;
  Require(reply.body.find(kMarkUp) == std::string::npos, "what a client says is no mark-up");
}

class Server {
 public:
  Server() : pages_({}) {
    pages_.SetServing(Source("fuzz"));
    auto address = ParseAdminAddress("127.0.0.1:0");
    Require(address.ok(), "an address");
    auto listener = ListenAt(*address);
    Require(listener.ok(), "a listener");
    auto server = AdminHttpServer::Start(
        *std::move(listener), {.header_bytes_max = 2048, .timeout = std::chrono::milliseconds(20)},
        [this](const AdminRequest& request) { return pages_.Answer(request); });
    Require(server.ok(), "a server");
    server_ = *std::move(server);
  }

  std::string Ask(std::string_view bytes) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const AdminAddress& to = server_->address();
    Require(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) == 0,
            "the server listens");
    (void)send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(fd.get(), SHUT_WR);
    std::string answer;
    char block[4096];
    for (ssize_t n; (n = recv(fd.get(), block, sizeof block, 0)) > 0;) {
      answer.append(block, static_cast<size_t>(n));
    }
    return answer;
  }

 private:
  AdminPages pages_;
  std::unique_ptr<AdminHttpServer> server_;
};

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvd::fuzz;  // NOLINT
  Feed feed(data, size);
  if (feed.Below(4) != 0) {
    Page(feed);
    return 0;
  }
  static auto* const server = new Server;
  const std::string answer = server->Ask(feed.RestAsText());
  Require(answer.empty() || answer.compare(0, 7, "HTTP/1.") == 0, "an answer is HTTP");
  static uint64_t asked = 0;
  if (++asked % 64 == 0) {
    Require(server->Ask("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").find(" 200 ") !=
                std::string::npos,
            "and others are served");
  }
  return 0;
}
