#include "common/base/errno_status.h"

#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd {

absl::Status ErrnoStatus(int error_number, std::string_view context) {
  const absl::StatusCode code =
      error_number > 0 ? absl::ErrnoToStatusCode(error_number) : absl::StatusCode::kUnknown;
  return absl::Status(
      code, absl::StrCat(ToAbsl(context), ": ", std::generic_category().message(error_number),
                         " (errno ", error_number, ")"));
}

}  // namespace kvd
