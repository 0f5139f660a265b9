#include "client/cli/suggest.h"

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/test.h"

namespace kvd::cli {
namespace {

const std::vector<std::string_view> kWords = {"get", "put", "exists", "completion", "deadline"};

TEST_CASE("Suggest: finds the word that was meant") {
  CHECK(Nearest("gte", kWords) == "get");
  CHECK(Nearest("gett", kWords) == "get");
  CHECK(Nearest("exist", kWords) == "exists");
  CHECK(Nearest("dedline", kWords) == "deadline");
  CHECK(Nearest("comp", kWords) == "completion");  // its beginning
}

TEST_CASE("Suggest: says nothing where nothing is near") {
  CHECK(Nearest("", kWords).empty());
  CHECK(Nearest("frobnicate", kWords).empty());
  CHECK(Nearest(std::string(10'000, 'g'), kWords).empty());
  CHECK(Nearest("get", {}).empty());
  const std::vector<std::string_view> touch = {"touch"};
  CHECK(Nearest("nosuch", touch).empty());
  CHECK(Nearest("tuoch", touch) == "touch");
}

}  // namespace
}  // namespace kvd::cli
