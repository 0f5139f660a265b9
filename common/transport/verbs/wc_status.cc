#include "common/transport/verbs/wc_status.h"

#include <sys/resource.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::verbs {
namespace {

struct Meaning {
  absl::StatusCode code;
  const char* text;
};

Meaning MeaningOf(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return {absl::StatusCode::kOk, ""};
    case IBV_WC_RETRY_EXC_ERR:
      return {absl::StatusCode::kUnavailable, "the peer does not answer"};
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return {absl::StatusCode::kUnavailable, "the peer has no receive posted"};
    case IBV_WC_WR_FLUSH_ERR:
      return {absl::StatusCode::kUnavailable, "the connection has ended"};
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return {absl::StatusCode::kUnavailable, "the peer gave up"};
    case IBV_WC_FATAL_ERR:
      return {absl::StatusCode::kUnavailable, "the device failed"};
    case IBV_WC_LOC_QP_OP_ERR:
      // What Soft-RoCE says when its link is down.
      return {absl::StatusCode::kUnavailable, "the device could not send; is its link up?"};
    case IBV_WC_REM_ACCESS_ERR:
      // Whether it will admit us again only it can say, and in other words than these.
      return {
          absl::StatusCode::kUnavailable,
          "the peer does not let this memory be read: it was restarted, or has revoked the key"};
    case IBV_WC_REM_INV_REQ_ERR:
      return {absl::StatusCode::kDataLoss, "the peer calls the request invalid"};
    case IBV_WC_REM_OP_ERR:
      return {absl::StatusCode::kDataLoss, "the peer could not carry the request out"};
    case IBV_WC_BAD_RESP_ERR:
      return {absl::StatusCode::kDataLoss, "the peer's answer is not one"};
    case IBV_WC_LOC_LEN_ERR:
      return {absl::StatusCode::kDataLoss, "the message is longer than its buffer"};
    default:
      return {absl::StatusCode::kInternal, "the request was wrong on this side"};
  }
}

}  // namespace

absl::Status WcStatus(ibv_wc_status status, uint32_t vendor_code, std::string_view what) {
  const Meaning meaning = MeaningOf(status);
  return absl::Status(
      meaning.code, absl::StrCat(ToAbsl(what), ": ", meaning.text, " (", ibv_wc_status_str(status),
                                 ", ", static_cast<int>(status), "/", vendor_code, ")"));
}

absl::Status RegistrationStatus(int error_number, std::string_view device, uint64_t bytes) {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return RegistrationStatusWithLimit(error_number, device, bytes,
                                     known ? limit.rlim_cur : ~uint64_t{0});
}

absl::Status RegistrationStatusWithLimit(int error_number, std::string_view device, uint64_t bytes,
                                         uint64_t memlock_bytes) {
  const std::string what =
      absl::StrCat("registering ", FormatBytes(bytes), " with ", ToAbsl(device));
  const bool could_be_memlock =
      error_number == ENOMEM || error_number == EPERM || error_number == EAGAIN;
  if (could_be_memlock && memlock_bytes != ~uint64_t{0}) {
    return absl::ResourceExhaustedError(absl::StrCat(
        ErrnoStatus(error_number, what).message(), "; need ", FormatBytes(bytes),
        " more, RLIMIT_MEMLOCK is ", FormatBytes(memlock_bytes),
        " for all of this user's: LimitMEMLOCK=infinity (systemd), ulimit -l unlimited, "
        "--ulimit memlock=-1 (docker), IPC_LOCK (Kubernetes)"));
  }
  return ErrnoStatus(error_number, what);
}

}  // namespace kvd::verbs
