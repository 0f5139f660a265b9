#include "client/internal/target.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "common/transport/shm/default_path.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE("Target: paths and shm: are shared memory") {
  for (const auto& [text, path] : {std::pair{"shm:/run/a.sock", "/run/a.sock"},
                                   {"/tmp/b", "/tmp/b"},
                                   {"shm:rel", "rel"},
                                   {"rel.sock", "rel.sock"},
                                   {"./a:b", "./a:b"},
                                   {"a/b", "a/b"}}) {
    const auto target = ParseTarget(text);
    KVD_REQUIRE_OK(target);
    CHECK(target->kind == Target::Kind::kShm);
    CHECK(target->socket_path == path);
    CHECK(target->name == std::string("shm:") + path);
  }
  const auto target = ParseTarget("");
  KVD_REQUIRE_OK(target);
  CHECK(target->socket_path == DefaultSocketPath());
}

TEST_CASE("Target: a word is a path if a socket is there") {
  TempDir dir;
  REQUIRE(chdir(dir.path().c_str()) == 0);
  KVD_REQUIRE_CODE(ParseTarget("there"), kInvalidArgument);
  std::ofstream("there") << "no socket";
  KVD_REQUIRE_CODE(ParseTarget("there"), kInvalidArgument);
  REQUIRE(unlink("there") == 0);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{AF_UNIX, "there"};
  REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  close(fd);
  const auto target = ParseTarget("there");
  REQUIRE(chdir("/") == 0);
  KVD_REQUIRE_OK(target);
  CHECK(target->socket_path == "there");
}

TEST_CASE("Target: hosts are RDMA, and a name leads back to the same target") {
  struct Case {
    const char* text;
    const char* host;
    uint16_t port;
    const char* name;
  };
  for (const Case& expected :
       {Case{"rdma:node7:7000", "node7", 7000, "rdma:node7:7000"},
        Case{"rdma:node7", "node7", kDefaultPort, "rdma:node7:7711"},
        Case{"10.0.0.1:1", "10.0.0.1", 1, "rdma:10.0.0.1:1"},
        Case{"[fe80::1%ib0]:65535", "fe80::1%ib0", 65535, "rdma:[fe80::1%ib0]:65535"},
        Case{"rdma:[fd77::2]", "fd77::2", kDefaultPort, "rdma:[fd77::2]:7711"}}) {
    CAPTURE(expected.text);
    const auto target = ParseTarget(expected.text);
    KVD_REQUIRE_OK(target);
    CHECK(target->kind == Target::Kind::kRdma);
    CHECK(target->host == expected.host);
    CHECK(target->port == expected.port);
    CHECK(target->name == expected.name);
    KVD_REQUIRE_OK(ParseTarget(target->name));
    CHECK(ParseTarget(target->name)->host == expected.host);
  }
}

TEST_CASE("Target: what is none is refused, and named") {
  for (const char* text :
       {"kvd", "shm:", "rdma:", "rdma::7711", "host:", "host:0", "host:65536", "host:7711x",
        "fe80::1:7711", "[fe80::1:7711", "[fe80::1]7711", "rdma:[]:7711"}) {
    CAPTURE(text);
    const auto target = ParseTarget(text);
    KVD_REQUIRE_CODE(target, kInvalidArgument);
    CHECK_THAT(MessageOf(target), Catch::Contains(std::string("'") + text + "'"));
  }
}

TEST_CASE("Target: of several none is left out") {
  const auto targets = ParseTargets("shm:/a,h:1");
  KVD_REQUIRE_OK(targets);
  REQUIRE(targets->size() == 2);
  CHECK((*targets)[1].host == "h");
  KVD_REQUIRE_OK(ParseTargets(""));
  for (const char* text : {",", "shm:/a,", ",shm:/a", "shm:/a,,h:1"}) {
    CAPTURE(text);
    KVD_REQUIRE_CODE(ParseTargets(text), kInvalidArgument);
    CHECK_THAT(MessageOf(ParseTargets(text)),
               Catch::Contains(std::string("'") + text + "': a comma has no target"));
  }
}

}  // namespace kvd::test
