// Where a peer listens.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kvd::bench {

struct Place {
  std::string path;  // of a Unix socket; empty: host and port
  std::string host;
  int port = 0;
};

// "/path" or "HOST:PORT". InvalidArgument names the text.
inline absl::StatusOr<Place> ParsePlace(const std::string& text) {
  Place place;
  if (text.starts_with('/')) {
    place.path = text;
    return place;
  }
  const size_t colon = text.rfind(':');
  if (colon == 0 || colon == std::string::npos ||
      !absl::SimpleAtoi(text.substr(colon + 1), &place.port) || place.port < 1 ||
      place.port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, " is not understood; give the path of a socket, or HOST:PORT"));
  }
  place.host = text.substr(0, colon);
  return place;
}

}  // namespace kvd::bench
