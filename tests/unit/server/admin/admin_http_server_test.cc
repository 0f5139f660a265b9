#include "server/admin/admin_http_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/unique_fd.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using namespace std::chrono_literals;

constexpr AdminHttpServer::Options kPatient{.timeout = 600s};

std::unique_ptr<AdminHttpServer> StartServer(const AdminHttpServer::Options& options,
                                             AdminHttpServer::Handler handler) {
  auto listener = ListenAt(*ParseAdminAddress("0"));
  KVD_REQUIRE_OK(listener);
  auto server = AdminHttpServer::Start(*std::move(listener), options, std::move(handler));
  KVD_REQUIRE_OK(server);
  return *std::move(server);
}

AdminReply Echo(const AdminRequest& request) {
  AdminReply reply;
  reply.body = std::string(request.method) + " " + std::string(request.path) + " " +
               std::string(request.accept);
  return reply;
}

// A connection of a client.
class Peer {
 public:
  explicit Peer(const AdminHttpServer& server, const char* from = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in local{};
    local.sin_family = AF_INET;
    inet_pton(AF_INET, from, &local.sin_addr);
    REQUIRE(bind(fd_.get(), reinterpret_cast<sockaddr*>(&local), sizeof(local)) == 0);
    const AdminAddress& to = server.address();
    REQUIRE(connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.length) == 0);
  }

  // False: the server has closed.
  bool Send(const std::string& text) const {
    return send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // All that comes until the server closes.
  std::string ReadAll() const {
    std::string all;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = recv(fd_.get(), buffer, sizeof(buffer), 0)) > 0) {
      all.append(buffer, static_cast<size_t>(n));
    }
    return all;
  }

  std::string Ask(const std::string& request) const {
    Send(request);
    return ReadAll();
  }

 private:
  UniqueFd fd_;
};

constexpr char kGet[] = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";

}  // namespace

TEST_CASE("Admin HTTP: answers one request, closes, and forbids the page to load or run anything") {
  const auto server = StartServer(kPatient, Echo);
  const std::string reply =
      Peer(*server).Ask("GET /a/b?c=d HTTP/1.1\r\nHost: h\r\nAccept: text/x\r\n\r\n");
  CHECK_THAT(reply, Catch::StartsWith("HTTP/1.1 200 OK\r\n"));
  CHECK_THAT(reply, Catch::EndsWith("\r\n\r\nGET /a/b text/x"));
  CHECK_THAT(reply, Catch::Contains("Content-Security-Policy: default-src 'none'; "));
  CHECK_THAT(reply, Catch::Contains("X-Content-Type-Options: nosniff\r\n"));
  CHECK_THAT(reply, Catch::Contains("Cache-Control: no-store\r\n"));
  const std::string head = Peer(*server).Ask("HEAD /x HTTP/1.0\r\n\r\n");
  CHECK_THAT(head, Catch::Contains("Content-Length: 8\r\n"));
  CHECK_THAT(head, Catch::EndsWith("\r\n\r\n"));
}

TEST_CASE("Admin HTTP: what is no request, too long a one or one with a body harms nobody") {
  const auto server = StartServer(kPatient, Echo);
  const auto impatient = StartServer({.timeout = 200ms}, Echo);
  CHECK_THAT(Peer(*server).Ask("GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n"),
             Catch::StartsWith("HTTP/1.1 414"));
  CHECK_THAT(
      Peer(*server).Ask("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(17'000, 'a') + "\r\n\r\n"),
      Catch::StartsWith("HTTP/1.1 431"));
  for (const std::string& garbage :
       {std::string(3, '\0') + "\r\n\r\n\r\n", std::string("\x16\x03\x01\x02\r\n\r\n"),
        std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET / HTTP/9.1\r\n\r\n")}) {
    CHECK_THAT(Peer(*impatient).Ask(garbage), !Catch::Contains("200 OK"));
  }
  CHECK_THAT(Peer(*server).Ask("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"),
             Catch::Contains("POST /x"));
  CHECK_THAT(Peer(*server).Ask(kGet), Catch::Contains("GET /x"));
}

TEST_CASE("Admin HTTP: who does not send his request, or sends it slowly, is closed in the end") {
  const auto server = StartServer({.timeout = 200ms}, Echo);
  const Peer silent(*server);
  CHECK(silent.ReadAll().empty());
  // A byte now and then is no way to stay: the time counts from the connection's beginning.
  const Peer slow(*server);
  size_t sent = 0;
  while (slow.Send("a")) ++sent;
  CHECK(sent > 0);
}

TEST_CASE("Admin HTTP: who holds connections keeps nobody out: each new one closes the oldest") {
  // Whoever holds them has all the time in the world.
  const auto server = StartServer(kPatient, Echo);
  SECTION("of one address") {
    std::vector<std::unique_ptr<Peer>> holders;
    for (int i = 0; i < 100; ++i) holders.push_back(std::make_unique<Peer>(*server));
    CHECK_THAT(Peer(*server).Ask(kGet), Catch::Contains("GET /x"));
    CHECK(holders[0]->ReadAll().empty());
  }
  SECTION("of many addresses") {
    std::vector<std::unique_ptr<Peer>> holders;
    for (int i = 0; i < 100; ++i) {
      const std::string from = "127.0.1." + std::to_string(1 + i);
      holders.push_back(std::make_unique<Peer>(*server, from.c_str()));
    }
    CHECK_THAT(Peer(*server, "127.0.2.1").Ask(kGet), Catch::Contains("GET /x"));
    CHECK(holders[0]->ReadAll().empty());
  }
  SECTION("one address does not push out another's") {
    const Peer other(*server, "127.0.3.1");
    REQUIRE(other.Send("GET /x HTTP/1.1\r\n"));
    std::vector<std::unique_ptr<Peer>> holders;
    for (int i = 0; i < 100; ++i) holders.push_back(std::make_unique<Peer>(*server));
    CHECK_THAT(other.Ask("Host: h\r\n\r\n"), Catch::Contains("GET /x"));
  }
}

TEST_CASE(
    "Admin HTTP: where there is no memory for a page it says so, other failures end one "
    "connection") {
  enum { kNothing, kMemory, kOther };
  std::atomic<int> lacks{kMemory};
  const auto server = StartServer(kPatient, [&](const AdminRequest& request) {
    if (lacks == kMemory) throw std::bad_alloc();
    if (lacks == kOther) throw std::runtime_error("a bug");
    return Echo(request);
  });
  for (int i = 0; i < 2; ++i) {
    const std::string answer = Peer(*server).Ask(kGet);
    CHECK_THAT(answer, Catch::StartsWith("HTTP/1.1 503"));
    CHECK_THAT(answer, Catch::Contains("kvd is out of memory"));
    CHECK_THAT(answer, Catch::Contains("Content-Security-Policy"));
  }
  lacks = kOther;
  CHECK(Peer(*server).Ask(kGet).empty());
  lacks = kNothing;
  CHECK_THAT(Peer(*server).Ask(kGet), Catch::Contains("GET /x"));
}

TEST_CASE("Admin HTTP: ends with connections open, and its port is free again") {
  AdminAddress address;
  {
    const auto server = StartServer(kPatient, Echo);
    address = server->address();
    const Peer idle(*server);
    CHECK_THAT(Peer(*server).Ask(kGet), Catch::Contains("GET /x"));
  }
  KVD_REQUIRE_OK(ListenAt(address));
}

}  // namespace kvd::test
