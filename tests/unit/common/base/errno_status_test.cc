// Each status keeps errno's number, its text and the caller's context, under the promised code.
#include "common/base/errno_status.h"

#include <cerrno>

#include "absl/status/status.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("ErrnoStatus: message holds context, text and number") {
  const absl::Status status = ErrnoStatus(EACCES, "open /x");
  CHECK(test::MessageOf(status) == "open /x: Permission denied (errno 13)");
}

TEST_CASE("ErrnoStatus: codes are those of the contract") {
  struct Expected {
    int error_number;
    absl::StatusCode code;
  };
  for (const Expected& expected : {
           Expected{EACCES, absl::StatusCode::kPermissionDenied},
           Expected{EPERM, absl::StatusCode::kPermissionDenied},
           Expected{ENOENT, absl::StatusCode::kNotFound},
           Expected{ENOMEM, absl::StatusCode::kResourceExhausted},
           Expected{EMFILE, absl::StatusCode::kResourceExhausted},
           Expected{ENOSPC, absl::StatusCode::kResourceExhausted},
           Expected{ECONNREFUSED, absl::StatusCode::kUnavailable},
           Expected{ECONNRESET, absl::StatusCode::kUnavailable},
           Expected{EAGAIN, absl::StatusCode::kUnavailable},
           Expected{ETIMEDOUT, absl::StatusCode::kDeadlineExceeded},
           Expected{ENOSYS, absl::StatusCode::kUnimplemented},
           Expected{EINVAL, absl::StatusCode::kInvalidArgument},
       }) {
    CAPTURE(expected.error_number);
    CHECK(ErrnoStatus(expected.error_number, "x").code() == expected.code);
  }
}

TEST_CASE("ErrnoStatus: never OK, even without an error number") {
  KVD_REQUIRE_CODE(ErrnoStatus(0, "x"), kUnknown);
  KVD_REQUIRE_CODE(ErrnoStatus(-5, "x"), kUnknown);
  KVD_REQUIRE_CODE(ErrnoStatus(99999, "x"), kUnknown);
}

TEST_CASE("ErrnoStatus: takes the thread's errno by default") {
  errno = ENOENT;
  CHECK(ErrnoStatus("stat /y") == ErrnoStatus(ENOENT, "stat /y"));
}

}  // namespace
}  // namespace kvd
