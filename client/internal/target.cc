#include "client/internal/target.h"

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"
#include "common/transport/shm/default_path.h"

namespace kvd {

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  constexpr std::string_view kScheme = "shm:";
  std::string path;
  if (text.empty() || text == kScheme) {
    path = DefaultSocketPath();
  } else if (text.starts_with(kScheme)) {
    path = text.substr(kScheme.size());
  } else if (text.front() == '/') {
    path = text;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("target '", ToAbsl(text), "' is not one of shm:PATH, /PATH or empty for the default socket"));
  }
  Target target;
  target.name = absl::StrCat(ToAbsl(kScheme), path);
  target.socket_path = std::move(path);
  return target;
}

}  // namespace kvd
