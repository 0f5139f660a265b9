// Every completion status becomes an error that keeps the raw code; a failed registration names
// limit and remedy.
#include "common/transport/verbs/wc_status.h"

#include <cerrno>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::verbs {

TEST_CASE(
    "WcStatus: every status but success is an error with its raw code and the request's name") {
  for (int raw = 0; raw <= IBV_WC_TM_RNDV_INCOMPLETE; ++raw) {
    const absl::Status status = WcStatus(static_cast<ibv_wc_status>(raw), 77, "reading");
    CAPTURE(raw);
    if (raw == IBV_WC_SUCCESS) {
      CHECK(status.ok());
      continue;
    }
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(test::MessageOf(status), Catch::StartsWith("reading: "));
    CHECK_THAT(test::MessageOf(status), Catch::Contains(std::to_string(raw) + "/77"));
  }
}

TEST_CASE("WcStatus: what callers act on") {
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_RETRY_EXC_ERR, 0, "x"), kUnavailable);
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_WR_FLUSH_ERR, 0, "x"), kUnavailable);
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_RNR_RETRY_EXC_ERR, 0, "x"), kUnavailable);
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_LOC_QP_OP_ERR, 0, "x"), kUnavailable);
  // Not PermissionDenied, which says that connecting again is of no use: also what a kvd that is
  // just being killed, or started anew, answers to the first READ.
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_REM_ACCESS_ERR, 0, "x"), kUnavailable);
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_LOC_LEN_ERR, 0, "x"), kDataLoss);
  KVD_REQUIRE_CODE(WcStatus(IBV_WC_LOC_PROT_ERR, 0, "x"), kInternal);
  CHECK(IsFlushed(IBV_WC_WR_FLUSH_ERR));
  CHECK_FALSE(IsFlushed(IBV_WC_RETRY_EXC_ERR));
}

TEST_CASE("RegistrationStatus: where a memlock limit stands, it and its remedies are named") {
  for (const int error : {ENOMEM, EPERM}) {
    const absl::Status status =
        RegistrationStatusWithLimit(error, "mlx5_0", uint64_t{4} << 30, 65536);
    KVD_REQUIRE_CODE(status, kResourceExhausted);
    for (const char* part : {"mlx5_0", "4 GiB", "RLIMIT_MEMLOCK is 64 KiB", "LimitMEMLOCK=infinity",
                             "ulimit -l", "--ulimit memlock=-1", "IPC_LOCK"}) {
      CHECK_THAT(test::MessageOf(status), Catch::Contains(part));
    }
  }
}

TEST_CASE("RegistrationStatus: another error is not blamed on the limit") {
  const absl::Status fault = RegistrationStatusWithLimit(EFAULT, "rxe0", 4096, 65536);
  CHECK_THAT(test::MessageOf(fault), !Catch::Contains("MEMLOCK"));
  const absl::Status unlimited = RegistrationStatusWithLimit(ENOMEM, "rxe0", 4096, ~uint64_t{0});
  KVD_REQUIRE_CODE(unlimited, kResourceExhausted);
  CHECK_THAT(test::MessageOf(unlimited), !Catch::Contains("MEMLOCK"));
}

}  // namespace kvd::verbs
