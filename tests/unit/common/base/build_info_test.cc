// The version is three numbers, and the commit is never empty.
#include "common/base/build_info.h"

#include <string>

#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("BuildInfo: a semantic version and some commit") {
  CHECK_THAT(std::string(Version()), Catch::Matchers::Matches("[0-9]+\\.[0-9]+\\.[0-9]+"));
  CHECK_FALSE(Commit().empty());
}

}  // namespace
}  // namespace kvd
