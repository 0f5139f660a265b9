#include "client/cli/progress.h"

#include <string>

#include "client/cli/text.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST_CASE("Progress: a bar where the total is known, numbers where it is not") {
  CHECK(FormatProgress("load x", {1000, 1, 52, 100}, 2 * kSecond, 60) ==
        "load x  [========>        ]  52%  1000 items  500/s  1 error");
  CHECK(FormatProgress("load -", {1000, 0, 52, {}}, 2 * kSecond, 60) ==
        "load -  1000 items  500/s  0 errors");
  CHECK(FormatProgress("x", {1, 0, 10, 10}, kSecond, 60).find("100%") != std::string::npos);
  // A file that grew meanwhile, and an empty one.
  CHECK(FormatProgress("x", {1, 0, 20, 10}, kSecond, 60).find("100%") != std::string::npos);
  CHECK(FormatProgress("x", {0, 0, 0, 0}, 0, 60).find("  0%") != std::string::npos);
}

TEST_CASE("Progress: never wider than the terminal") {
  for (size_t columns = 1; columns < 120; ++columns) {
    const ProgressCounts counts = {123456, 7, UINT64_MAX / 3, UINT64_MAX};
    CHECK(DisplayWidth(FormatProgress("load data.tsv", counts, kSecond, columns)) <= columns);
  }
}

TEST_CASE("Progress: pace") {
  CHECK(FormatPace(100, 3 << 20, 2 * kSecond) == "2.00 s, 50 items/s, 1.5 MiB/s");
  CHECK(FormatPace(100, 3 << 20, 0) == "0.00 s");
}

struct Drawing {
  test::StringSource in{""};
  test::StringSink out;
  test::StringSink err;
  kvd::test::FakeClock clock;
  Console console = {.in = in,
                     .out = out,
                     .err = err,
                     .err_is_terminal = true,
                     .clock = clock,
                     .interrupted = {},
                     .environment = {}};
};

TEST_CASE("Progress: draws ten times a second at most, and leaves nothing behind") {
  Drawing drawing;
  {
    Progress progress(drawing.console, "load x", true);
    progress.Update({1, 0, 0, {}});
    CHECK(drawing.err.text.empty());
    drawing.clock.AdvanceMs(100);
    progress.Update({2, 0, 0, {}});
    CHECK(drawing.err.text == "\r\x1b[Kload x  2 items  20/s  0 errors");
    progress.Update({3, 0, 0, {}});
    CHECK(drawing.err.text == "\r\x1b[Kload x  2 items  20/s  0 errors");
  }
  CHECK(drawing.err.text.ends_with("\r\x1b[K"));
}

TEST_CASE("Progress: draws nothing where there is no terminal, or nobody wants it") {
  for (const bool terminal : {false, true}) {
    Drawing drawing;
    drawing.console.err_is_terminal = terminal;
    Progress progress(drawing.console, "load x", !terminal);
    drawing.clock.AdvanceMs(500);
    progress.Update({2, 0, 0, {}});
    progress.Clear();
    CHECK(drawing.err.text.empty());
  }
}

}  // namespace
}  // namespace kvd::cli
