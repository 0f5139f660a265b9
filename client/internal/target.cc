#include "client/internal/target.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/transport/shm/default_path.h"

namespace kvd {
namespace {

constexpr std::string_view kShmScheme = "shm:";
constexpr std::string_view kRdmaScheme = "rdma:";

absl::Status Wrong(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("target '", ToAbsl(text), "': ", ToAbsl(why),
                   "; it is shm:PATH, /PATH, rdma:HOST:PORT, HOST:PORT, or empty for "
                   "the default socket"));
}

bool IsPath(std::string_view text) {
  const size_t end = text.find_first_of("/:");
  if (end != std::string_view::npos) return text[end] == '/';
  struct stat facts;
  return text.ends_with(".sock") ||
         (stat(std::string(text).c_str(), &facts) == 0 && S_ISSOCK(facts.st_mode));
}

Target ShmTarget(std::string path) {
  Target target;
  target.name = absl::StrCat(ToAbsl(kShmScheme), path);
  target.socket_path = std::move(path);
  return target;
}

absl::StatusOr<uint16_t> ParsePort(std::string_view text, std::string_view port) {
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number == 0) {
    return Wrong(text, "the port is not a number from 1 to 65535");
  }
  return number;
}

// HOST, HOST:PORT, [IPV6] or [IPV6]:PORT.
absl::StatusOr<Target> RdmaTarget(std::string_view text, std::string_view place, bool port_needed) {
  Target target;
  target.kind = Target::Kind::kRdma;
  target.port = kDefaultPort;
  std::string_view rest;
  if (place.starts_with('[')) {
    const size_t close = place.find(']');
    if (close == std::string_view::npos) return Wrong(text, "a bracket is not closed");
    target.host = place.substr(1, close - 1);
    rest = place.substr(close + 1);
  } else {
    const size_t colon = place.find(':');
    if (colon != std::string_view::npos && place.find(':', colon + 1) != std::string_view::npos) {
      return Wrong(text, "an IPv6 address must stand in brackets");
    }
    target.host = place.substr(0, colon);
    rest = place.substr(std::min(colon, place.size()));
  }
  if (target.host.empty()) return Wrong(text, "no host is named");
  if (rest.starts_with(':')) {
    KVD_ASSIGN_OR_RETURN(target.port, ParsePort(text, rest.substr(1)));
  } else if (!rest.empty()) {
    return Wrong(text, "a colon and a port must follow the host");
  } else if (port_needed) {
    return Wrong(text, "it is no path, and a host needs a port");
  }
  const bool v6 = target.host.find(':') != std::string::npos;
  target.name = absl::StrCat(ToAbsl(kRdmaScheme), v6 ? "[" : "", target.host, v6 ? "]" : "", ":",
                             target.port);
  return target;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  if (text == kShmScheme) return Wrong(text, "no path is named");
  if (text.empty()) return ShmTarget(DefaultSocketPath());
  if (text.starts_with(kShmScheme)) return ShmTarget(std::string(text.substr(kShmScheme.size())));
  if (IsPath(text)) return ShmTarget(std::string(text));
  if (text.starts_with(kRdmaScheme))
    return RdmaTarget(text, text.substr(kRdmaScheme.size()), /*port_needed=*/false);
  return RdmaTarget(text, text, /*port_needed=*/true);
}

absl::StatusOr<std::vector<Target>> ParseTargets(std::string_view text) {
  const std::string_view all = text;
  std::vector<Target> targets;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const bool alone = targets.empty() && comma == std::string_view::npos;
    if (one.empty() && !alone) return Wrong(all, "a comma has no target on one side");
    KVD_ASSIGN_OR_RETURN(Target target, ParseTarget(one));
    targets.push_back(std::move(target));
    if (comma == std::string_view::npos) return targets;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace kvd
