// Conversions keep the pointer and the length, zero bytes included.
#include "common/base/string_view.h"

#include <string_view>

#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("StringView: both ways refer to the same bytes") {
  using std::string_view_literals::operator""sv;
  const std::string_view text = "a\0b"sv;
  const absl::string_view converted = ToAbsl(text);
  CHECK(static_cast<const void*>(converted.data()) == static_cast<const void*>(text.data()));
  CHECK(converted.size() == 3);
  CHECK(ToStd(converted) == text);
  CHECK(ToStd(ToAbsl({})).empty());
}

}  // namespace
}  // namespace kvd
