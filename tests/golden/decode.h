// The project's own code as a decoder of golden files: what a reader would make of the bytes.
#pragma once

#include <string>
#include <string_view>

#include "tests/golden/golden_cases.h"

namespace kvd::test {

// The content of `bytes`; {"error": why} if the code does not accept them.
Json DecodeGolden(const std::string& kind, const Json& context, std::string_view bytes);

}  // namespace kvd::test
