// A frame in the pieces in which its sender holds it, so that nobody joins them before the
// transport copies them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kvd {

struct FrameParts {
  std::span<const std::byte> header;
  std::string_view key;
  std::string_view payload;

  size_t bytes() const { return header.size() + key.size() + payload.size(); }
};

}  // namespace kvd
