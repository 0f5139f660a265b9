// Waiting for a kvd that was started a moment ago, and for no other.
#include "client/cli/patient_connector.h"

#include <chrono>
#include <memory>
#include <string>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/fake_store.h"

namespace kvd::cli::test {
namespace {

using namespace std::chrono_literals;

// Time that passes only while somebody sleeps; at `listens_at` a server is there.
struct Attempt {
  FakeServer server;
  std::chrono::nanoseconds now = 5s;
  std::chrono::nanoseconds listens_at = 100h;
  absl::Status error = absl::UnavailableError("no socket");
  bool interrupted = false;
  std::chrono::nanoseconds out_of_time_below{0};  // of the deadline that is left

  absl::Status Connect(const std::string& target, std::chrono::nanoseconds deadline = 5s) {
    const Connector inner = ConnectorTo(server);
    const Connector patient = ConnectPatiently(
        [&](std::string_view to, const ConnectOptions& left) {
          server.connect_error = now < listens_at ? error : absl::OkStatus();
          if (left.deadline < out_of_time_below) {
            server.connect_error = absl::DeadlineExceededError("out of time");
          }
          return inner(to, left);
        },
        {.now = [this] { return now; },
         .sleep = [this](std::chrono::nanoseconds time) { now += time; },
         .interrupted = [this] { return interrupted; }});
    return patient(target, {.deadline = deadline, .rdma = {.device = "rxe0"}}).status();
  }
};

TEST_CASE("Patient connector: a server that comes up meanwhile is reached") {
  const kvd::test::TempDir directory;
  Attempt attempt;
  attempt.listens_at = attempt.now + 500ms;
  CHECK(attempt.Connect("shm:" + directory.Join("s")).ok());
  CHECK(attempt.server.targets.size() > 2);
  CHECK(attempt.now < 5s + 600ms);
  CHECK(attempt.server.choices.back().device == "rxe0");
}

TEST_CASE("Patient connector: gives up after a second, or at the deadline") {
  const kvd::test::TempDir directory;
  Attempt attempt;
  CHECK(attempt.Connect(directory.Join("s")) == attempt.error);
  CHECK(attempt.now >= 6s);
  CHECK(attempt.now < 6s + 100ms);
  Attempt hasty;
  CHECK_FALSE(hasty.Connect(directory.Join("s"), 100ms).ok());
  CHECK(hasty.now < 5s + 200ms);
}

TEST_CASE("Patient connector: what was learned is not forgotten when time runs out") {
  const kvd::test::TempDir directory;
  Attempt attempt;
  attempt.out_of_time_below = 50ms;
  const absl::Status status = attempt.Connect(directory.Join("s"), 100ms);
  CHECK(status == attempt.error);
  CHECK(attempt.server.targets.size() > 2);
  Attempt slow;
  slow.out_of_time_below = 1h;
  CHECK(absl::IsDeadlineExceeded(slow.Connect(directory.Join("s"), 100ms)));
}

TEST_CASE("Patient connector: what will not change is not waited for") {
  const kvd::test::TempDir directory;
  for (const std::string& target :
       {directory.Join("missing/s"), std::string("rdma:host:7711"), std::string("host:7711")}) {
    Attempt attempt;
    CHECK_FALSE(attempt.Connect(target).ok());
    CHECK(attempt.server.targets.size() == 1);
  }
  Attempt refused;
  refused.error = absl::PermissionDeniedError("no");
  CHECK_FALSE(refused.Connect(directory.Join("s")).ok());
  CHECK(refused.server.targets.size() == 1);
  Attempt interrupted;
  interrupted.interrupted = true;
  CHECK_FALSE(interrupted.Connect(directory.Join("s")).ok());
  CHECK(interrupted.server.targets.size() == 1);
}

TEST_CASE("Patient connector: waits in vain once, and again after the server was there") {
  const kvd::test::TempDir directory;
  const std::string target = directory.Join("s");
  std::chrono::nanoseconds now = 5s;
  bool listens = false;
  size_t tries = 0;
  FakeServer server;
  const Connector patient = ConnectPatiently(
      [&, inner = ConnectorTo(server)](std::string_view to, const ConnectOptions& left) {
        ++tries;
        server.connect_error = listens ? absl::OkStatus() : absl::UnavailableError("no socket");
        return inner(to, left);
      },
      {.now = [&now] { return now; },
       .sleep = [&now](std::chrono::nanoseconds time) { now += time; },
       .interrupted = [] { return false; }});
  const auto tries_of_one = [&](const std::string& to) {
    const size_t before = tries;
    patient(to, {.deadline = 5s, .rdma = {}}).status().IgnoreError();
    return tries - before;
  };
  CHECK(tries_of_one(target) > 2);
  CHECK(tries_of_one(target) == 1);
  CHECK(tries_of_one(directory.Join("other")) > 2);
  listens = true;
  CHECK(tries_of_one(target) == 1);
  listens = false;
  CHECK(tries_of_one(target) > 2);
}

TEST_CASE("Patient connector: the socket of a target") {
  CHECK(SocketPathOf("shm:/a/b") == "/a/b");
  CHECK(SocketPathOf("shm:b.sock") == "b.sock");
  CHECK(SocketPathOf("b.sock") == "b.sock");
  CHECK(SocketPathOf("./a:b") == "./a:b");
  CHECK(SocketPathOf("rdma:h:1").empty());
  CHECK(SocketPathOf("h:1").empty());
  CHECK_FALSE(SocketPathOf("").empty());
  CHECK(SocketPathOf("shm:").empty());  // names no socket
}

}  // namespace
}  // namespace kvd::cli::test
