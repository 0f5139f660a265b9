// Errors pass through the macros unchanged, values arrive, and an expression is evaluated once.
#include "common/base/status_macros.h"

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

absl::Status ReturnIfError(const absl::Status& status, int& reached) {
  KVD_RETURN_IF_ERROR(status);
  ++reached;
  return absl::OkStatus();
}

absl::StatusOr<int> AssignOrReturn(absl::StatusOr<std::pair<int, int>> pair, int& evaluations) {
  KVD_ASSIGN_OR_RETURN(const auto values, (++evaluations, std::move(pair)));
  KVD_ASSIGN_OR_RETURN(const auto more, absl::StatusOr<std::pair<int, int>>(std::pair(3, 4)));
  return values.first + values.second + more.first + more.second;
}

absl::StatusOr<std::unique_ptr<int>> MoveOnly(absl::StatusOr<std::unique_ptr<int>> source) {
  std::unique_ptr<int> value;
  KVD_ASSIGN_OR_RETURN(value, std::move(source));
  return value;
}

TEST_CASE("StatusMacros: an error returns at once and unchanged") {
  int reached = 0;
  const absl::Status error = absl::DataLossError("torn");
  CHECK(ReturnIfError(error, reached) == error);
  CHECK(reached == 0);
  int evaluations = 0;
  CHECK(AssignOrReturn(error, evaluations).status() == error);
  CHECK(evaluations == 1);
}

TEST_CASE("StatusMacros: success goes on with the value") {
  int reached = 0;
  KVD_REQUIRE_OK(ReturnIfError(absl::OkStatus(), reached));
  CHECK(reached == 1);
  int evaluations = 0;
  const absl::StatusOr<int> sum = AssignOrReturn(std::pair(1, 2), evaluations);
  KVD_REQUIRE_OK(sum);
  CHECK(*sum == 10);
  CHECK(evaluations == 1);
}

TEST_CASE("StatusMacros: a move-only value is moved out") {
  const auto moved = MoveOnly(std::make_unique<int>(7));
  KVD_REQUIRE_OK(moved);
  CHECK(**moved == 7);
  KVD_REQUIRE_CODE(MoveOnly(absl::AbortedError("x")), kAborted);
}

}  // namespace
}  // namespace kvd
