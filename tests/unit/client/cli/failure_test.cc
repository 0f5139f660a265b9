#include "client/cli/failure.h"

#include <cerrno>
#include <string>

#include "common/base/errno_status.h"
#include "tests/support/test.h"

namespace kvd::cli {
namespace {

TEST_CASE("Failure: every code of the library has its exit code and an advice") {
  struct Case {
    absl::Status status;
    int exit;
  };
  for (const Case& each : {
           Case{absl::NotFoundError("x"), 1},
           Case{absl::InvalidArgumentError("x"), 2},
           Case{absl::UnavailableError("x"), 3},
           Case{absl::UnknownError("x"), 3},
           Case{absl::DeadlineExceededError("x"), 4},
           Case{absl::OutOfRangeError("x"), 5},
           Case{absl::ResourceExhaustedError("x"), 5},
           Case{absl::PermissionDeniedError("x"), 5},
           Case{absl::FailedPreconditionError("x"), 5},
           Case{absl::UnimplementedError("x"), 5},
           Case{absl::DataLossError("x"), 6},
           Case{absl::InternalError("x"), 6},
       }) {
    const Failure failure = StoreFailure(each.status);
    INFO(each.status);
    CHECK(static_cast<int>(failure.code) == each.exit);
    CHECK(failure.text.find("; ") != std::string::npos);
  }
}

TEST_CASE("Failure: a server that is there and has no room has refused; one that is not has not") {
  const absl::Status full = absl::UnavailableError("refused: too many handshakes at once");
  for (const Failure& failure : {StoreFailure(full), ConnectFailure("shm:/x", full)}) {
    CHECK(failure.code == ExitCode::kRefused);
    CHECK_THAT(failure.text, Catch::Contains("kvcli admin sessions"));
  }
  CHECK(StoreFailure(absl::UnavailableError("Connection refused")).code ==
        ExitCode::kCannotConnect);
}

TEST_CASE("Failure: who pings in vain is not told to ping") {
  const absl::Status late = absl::DeadlineExceededError("late");
  CHECK_THAT(StoreFailure(late, "stat").text, Catch::Contains("'kvcli ping'"));
  CHECK_THAT(StoreFailure(late, "ping").text,
             !Catch::Contains("'kvcli ping'") && Catch::Contains("--deadline"));
  // Nor who cannot connect, whatever he wants: a kvd that is stopped lets nobody in.
  CHECK_THAT(ConnectFailure("shm:/x", late).text,
             !Catch::Contains("'kvcli ping'") && Catch::Contains("kill -CONT"));
}

TEST_CASE("Failure: advice that a status brings is kept") {
  CHECK(StoreFailure(absl::ResourceExhaustedError("full; wait")).text == "full; wait");
  CHECK(StoreFailure(absl::ResourceExhaustedError("full")).text ==
        "full; delete what is not needed, or start kvd with a larger --memory or with --evict=lru");
  CHECK(UsageFailure("odd").text == "odd; see 'kvcli help'");
  CHECK(UsageFailure("odd", "incr").text == "odd; see 'kvcli help incr'");
  CHECK(StoreFailure(absl::InvalidArgumentError("odd"), "scan").text ==
        "odd; see 'kvcli help scan'");
}

TEST_CASE("Failure: connecting fails for want of a server, unless it says otherwise") {
  const Failure none = ConnectFailure("shm:/x", absl::NotFoundError("no socket at /x"));
  CHECK(none.code == ExitCode::kCannotConnect);
  CHECK(none.text ==
        "cannot connect: no socket at /x; start kvd, or name where it listens with --server");
  CHECK(ConnectFailure("shm:/x", absl::UnavailableError("gone; wait")).text ==
        "cannot connect to shm:/x: gone; wait");
  CHECK(ConnectFailure("", absl::UnavailableError("gone; wait")).text ==
        "cannot connect: gone; wait");
  CHECK(ConnectFailure("foo", absl::InvalidArgumentError("foo?")).text ==
        "cannot connect: foo?; give --server as shm:PATH or rdma:HOST:PORT");
  CHECK(ConnectFailure("rdma:h:1", absl::InvalidArgumentError("rdma:h:1?")).text ==
        "cannot connect: rdma:h:1?; give --server as rdma:HOST:PORT");
  for (const absl::Status& nobody :
       {absl::UnavailableError("rdma:h:1 is silent"), absl::NotFoundError("no host rdma:h:1")}) {
    CHECK_THAT(
        ConnectFailure("rdma:h:1", nobody).text,
        Catch::EndsWith("; start kvd with --listen, or name where it listens with --server"));
  }
  CHECK(ConnectFailure("h:1", absl::UnavailableError("gone; wait")).text ==
        "cannot connect to h:1: gone; wait (HOST:PORT is reached by RDMA; a kvd on this host by "
        "shm:PATH)");
  CHECK(ConnectFailure("foo", absl::InvalidArgumentError("?")).code == ExitCode::kUsage);
  CHECK(ConnectFailure("x", absl::PermissionDeniedError("?")).code == ExitCode::kRefused);
  CHECK(ConnectFailure("x", absl::FailedPreconditionError("?")).code == ExitCode::kRefused);
  CHECK(ConnectFailure("x", absl::DeadlineExceededError("?")).code == ExitCode::kDeadline);
  CHECK(ConnectFailure("x", absl::DataLossError("?")).code == ExitCode::kCorrupt);
}

TEST_CASE("Failure: targets that only RDMA reaches") {
  for (const char* target : {"rdma:h", "rdma:h:1", "h:1", "[fe80::1%ib0]:7711"})
    CHECK(IsRdmaTarget(target));
  for (const char* target : {"", "shm:/x", "shm:h:1", "/a:b", "./a:b", "a.sock"})
    CHECK_FALSE(IsRdmaTarget(target));
}

TEST_CASE("Failure: space is to be freed only where it is what lacks") {
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) {
    CHECK(LocalIoFailure(ErrnoStatus(error, "w"))
              .text.ends_with("; free some space or use another file"));
  }
  for (const int error : {EACCES, EIO, ENOENT, EISDIR, EMFILE}) {
    const Failure failure = LocalIoFailure(ErrnoStatus(error, "w"));
    CHECK(failure.code == ExitCode::kLocalIo);
    CHECK(failure.text.ends_with("; use another file"));
  }
}

TEST_CASE("Failure: at the prompt advice names commands as they are typed there") {
  const Failure failure = {ExitCode::kUsage, "see 'kvcli help'; usage: kvcli get KEY"};
  CHECK(FailureLine("", "x", failure) == "x: see 'help'; usage: get KEY\n");
  CHECK(FailureLine("kvcli: ", "x", failure) == "kvcli: x: " + failure.text + "\n");
}

TEST_CASE("Failure: a line is one line") {
  CHECK(FailureLine("kvcli: ", "get a", {ExitCode::kUsage, "b\nc\x1b; d"}) ==
        "kvcli: get a: b\\nc\\x1b; d\n");
  CHECK(FailureLine("", "", UsageFailure("b; c")) == "b; c\n");
}

}  // namespace
}  // namespace kvd::cli
