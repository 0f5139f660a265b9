#include "client/cli/line_reader.h"

#include <string>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli {
namespace {

// Lines, with "<too long>" for such ones.
std::vector<std::string> LinesOf(const std::string& bytes, size_t piece_bytes, size_t line_max) {
  test::StringSource source(bytes, piece_bytes);
  LineReader reader(source, line_max);
  std::vector<std::string> lines;
  while (true) {
    const auto outcome = reader.Next();
    KVD_REQUIRE_OK(outcome);
    if (*outcome == LineReader::Outcome::kEnd) break;
    lines.emplace_back(*outcome == LineReader::Outcome::kTooLong ? "<too long>" : reader.line());
    CHECK(reader.line_number() == lines.size());
  }
  CHECK(reader.bytes_taken() == bytes.size());
  return lines;
}

TEST_CASE("LineReader: lines are the same however the bytes arrive") {
  const std::string bytes = "one\r\n\n" + std::string(70'000, 'x') + "\nthree\rfour\n\r\nlast";
  const std::vector<std::string> expected = {"one",         "", std::string(70'000, 'x'),
                                             "three\rfour", "", "last"};
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, SIZE_MAX}) {
    CHECK(LinesOf(bytes, piece, 1'000'000) == expected);
  }
}

TEST_CASE("LineReader: nothing, and a file without a last newline") {
  CHECK(LinesOf("", SIZE_MAX, 10).empty());
  CHECK(LinesOf("\n", SIZE_MAX, 10) == std::vector<std::string>{""});
  CHECK(LinesOf("a", SIZE_MAX, 10) == std::vector<std::string>{"a"});
  CHECK(LinesOf("a\r", SIZE_MAX, 10) == std::vector<std::string>{"a"});
}

TEST_CASE("LineReader: passes over a line that is too long, and goes on after it") {
  const std::string bytes =
      "12345\n123456\n12345\r\n" + std::string(200'000, 'x') + "\nok\n1234567";
  const std::vector<std::string> expected = {"12345",      "<too long>", "12345",
                                             "<too long>", "ok",         "<too long>"};
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{4096}, SIZE_MAX}) {
    CHECK(LinesOf(bytes, piece, 5) == expected);
  }
}

// Interrupted once, in the middle of a line.
class Interrupted : public ByteSource {
 public:
  absl::StatusOr<size_t> Read(char* into, size_t) override {
    switch (step_++) {
      case 0:
        return std::string("ab").copy(into, 2);
      case 1:
        return absl::CancelledError("interrupted");
      case 2:
        return std::string("cd\ne").copy(into, 4);
      default:
        return 0;
    }
  }

 private:
  int step_ = 0;
};

TEST_CASE("LineReader: goes on with a line after an interruption") {
  Interrupted source;
  LineReader reader(source, 100);
  KVD_REQUIRE_CODE(reader.Next(), kCancelled);
  KVD_REQUIRE_OK(reader.Next());
  CHECK(reader.line() == "abcd");
  KVD_REQUIRE_OK(reader.Next());
  CHECK(reader.line() == "e");
  CHECK(*reader.Next() == LineReader::Outcome::kEnd);
}

TEST_CASE("LineReader: a line that is given up, short or long, leaves the next one as it is") {
  const std::string long_line(200'000, 'x');
  test::StringSource source("short\n" + long_line + "\nlast\n");
  LineReader lines(source, 1'000'000);
  for (const std::string& expected : {std::string("short"), long_line, std::string("last")}) {
    const auto outcome = lines.Next();
    KVD_REQUIRE_OK(outcome);
    CHECK(*outcome == LineReader::Outcome::kLine);
    CHECK(lines.line() == expected);
    lines.ReleaseLine();
  }
}

}  // namespace
}  // namespace kvd::cli
