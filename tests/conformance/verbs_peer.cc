#include "tests/conformance/verbs_peer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/transport/verbs/verbs_client_channel.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {
namespace {

constexpr char kPortVariable[] = "KVD_VERBS_PEER_PORT";
constexpr char kReadyVariable[] = "KVD_VERBS_PEER_READY_FD";

int Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

// Says that this peer is ready, with its port.
void Ready(uint16_t port) {
  KVD_CHECK(write(Variable(kReadyVariable), &port, sizeof(port)) == sizeof(port));
}

}  // namespace

VerbsPeer::VerbsPeer(const std::string& test_case, uint16_t port) {
  int ends[2];
  KVD_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const std::string port_text = std::to_string(port);
  const std::string fd_text = std::to_string(write_end.get());
  pid_ = fork();
  KVD_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(write_end.get(), F_SETFD, 0);
    setenv(kPortVariable, port_text.c_str(), 1);
    setenv(kReadyVariable, fd_text.c_str(), 1);
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execl("/proc/self/exe", "verbs_peer", test_case.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  write_end.Reset();
  KVD_CHECK(read(read_end.get(), &port_, sizeof(port_)) == sizeof(port_));
}

VerbsPeer::~VerbsPeer() { Kill(); }

void VerbsPeer::Stop() {
  KVD_CHECK(kill(pid_, SIGSTOP) == 0);
  siginfo_t info;
  KVD_CHECK(waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED) == 0);
}

void VerbsPeer::Continue() { KVD_CHECK(kill(pid_, SIGCONT) == 0); }

void VerbsPeer::Kill() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

// Hidden: only a VerbsPeer runs them.
TEST_CASE("verbs peer: server", "[.]") {
  if (Variable(kReadyVariable) < 0) KVD_SKIP("only for VerbsPeer");
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  Ready(static_cast<VerbsServerTransport&>(rig.server()).port());
  for (;;) pause();
}

TEST_CASE("verbs peer: client", "[.]") {
  if (Variable(kReadyVariable) < 0) KVD_SKIP("only for VerbsPeer");
  const RdmaEnvironment environment = FindRdmaEnvironment();
  VerbsTarget target;
  target.host = environment.server().address;
  target.port = static_cast<uint16_t>(Variable(kPortVariable));
  target.device = environment.client().device;
  target.connect = VerbsConnectModeUnderTest();
  auto channel = VerbsClientChannel::Connect(target, MakeHello(), DeadlineNs());
  KVD_REQUIRE_OK(channel);
  KVD_REQUIRE_OK((*channel)->Send(Frame("x")));
  KVD_REQUIRE_OK(Receive(**channel));
  Ready(target.port);
  for (;;) (*channel)->Wait(DeadlineNs()).IgnoreError();
}

}  // namespace kvd::test
