#include "client/internal/reply_status.h"

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd {

absl::Status StatusOfReply(const ReplyView& reply, uint64_t value_bytes) {
  const absl::string_view text =
      (reply.header.flags & kReplyErrorText) != 0 ? ToAbsl(reply.payload) : absl::string_view();
  switch (static_cast<ReplyStatus>(reply.header.status)) {
    case ReplyStatus::kOk:
      return absl::OkStatus();
    case ReplyStatus::kNotFound:
      return absl::NotFoundError("no such key");
    case ReplyStatus::kConditionFailed:
      return absl::AbortedError("the condition did not hold");
    case ReplyStatus::kTooLarge:
      return absl::OutOfRangeError(absl::StrCat("value of ", value_bytes, " bytes > --max_value ",
                                                reply.header.value_len, " on the server"));
    case ReplyStatus::kNoSpace:
      return absl::ResourceExhaustedError("the region is full; delete something or start kvd with a larger --memory");
    case ReplyStatus::kMalformed:
      return absl::DataLossError(absl::StrCat("the server found the request malformed: ", text));
    case ReplyStatus::kUnsupported:
      return absl::UnimplementedError(absl::StrCat("the server does not know this request: ", text));
    case ReplyStatus::kNotPermitted:
      return absl::PermissionDeniedError(absl::StrCat("not permitted: ", text));
    case ReplyStatus::kPullFailed:
      return absl::UnavailableError(absl::StrCat("the server could not fetch the value: ", text));
    case ReplyStatus::kShuttingDown:
      return absl::UnavailableError("the server is shutting down");
    case ReplyStatus::kBusy:
      return absl::UnavailableError(absl::StrCat("the server is busy: ", text));
    case ReplyStatus::kInternal:
      break;
  }
  return absl::InternalError(absl::StrCat("server error ", reply.header.status, ": ", text));
}

}  // namespace kvd
