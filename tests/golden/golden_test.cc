// The golden files are what today's code writes, and today's code reads them as their JSON says. A
// change of any byte of any format shows up here.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/golden/decode.h"
#include "tests/golden/golden_cases.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

const std::string kDirectory = "tests/golden/";

std::string ReadFile(const std::string& name) {
  std::ifstream file(kDirectory + name, std::ios::binary);
  REQUIRE(file.good());
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

constexpr const char* kHowTo =
    "if the change is meant, see docs/formats.md on versions, then write_golden.cc";

TEST_CASE("Golden: the code writes the same bytes and descriptions") {
  for (const GoldenCase& one : GoldenCases()) {
    INFO(one.name << ": " << kHowTo);
    CHECK((ReadFile(one.name + ".bin") == one.bytes));
    CHECK(ReadFile(one.name + ".json") == one.JsonText());
  }
  INFO(kHowTo);
  CHECK((ReadFile("vectors.json") == VectorsText()));
}

TEST_CASE("Golden: the code reads what each description says") {
  for (const GoldenCase& one : GoldenCases()) {
    const Json description = Json::parse(ReadFile(one.name + ".json"));
    INFO(one.name);
    CHECK(nlohmann::json(DecodeGolden(description["kind"], description["context"],
                                      ReadFile(one.name + ".bin"))) ==
          nlohmann::json(description["content"]));
  }
}

TEST_CASE("Golden: every file belongs to a case") {
  std::set<std::string> expected{"vectors.json"};
  for (const GoldenCase& one : GoldenCases()) {
    expected.insert(one.name + ".bin");
    expected.insert(one.name + ".json");
  }
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kDirectory)) {
    const std::string extension = entry.path().extension();
    if (extension == ".bin" || extension == ".json") found.insert(entry.path().filename());
  }
  CHECK(found == expected);
}

TEST_CASE("Golden: items and headers with a flipped bit are read as nothing else") {
  for (const GoldenCase& one : GoldenCases()) {
    if (one.kind != "item" && one.kind != "overflow_header") continue;
    for (size_t bit = one.kind == "item" ? 2 : 0; bit < one.bytes.size() * 8; ++bit) {
      std::string flipped = one.bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      if (!DecodeGolden(one.kind, one.context, flipped).contains("error"))
        FAIL(one.name << ", bit " << bit);
    }
  }
}

}  // namespace
}  // namespace kvd::test
