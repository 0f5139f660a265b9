// Conversions between the two string views: in some builds of Abseil absl::string_view is a type
// of its own. Ours is std::string_view everywhere; convert where an Abseil call needs the other.
#pragma once

#include <string_view>

#include "absl/strings/string_view.h"

namespace kvd {

// Both refer to the same bytes as their argument.
inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace kvd
