#include "client/cli/time_text.h"

#include <chrono>
#include <optional>

#include "tests/support/test.h"

namespace kvd::cli {
namespace {

using namespace std::chrono_literals;

TEST_CASE("TimeText: times to live") {
  CHECK(ParseTtl("60") == 60s);
  CHECK(ParseTtl("1.5") == 1500ms);
  CHECK(ParseTtl("500ms") == 500ms);
  CHECK(ParseTtl("1us") == 1us);
  CHECK(ParseTtl("10m") == 10min);
  CHECK(ParseTtl("2h") == 2h);
  CHECK(ParseTtl("1d") == 24h);
  CHECK(ParseTtl("1w") == 168h);
  CHECK(ParseTtl("1d12h30m") == 36h + 30min);
  CHECK(ParseTtl("0.5h") == 30min);
  CHECK(ParseTtl("36500d") == 876000h);
  for (const char* wrong : {"", "0", "0s", "-1", "1x", "ms", "1h30", "1 h", "1.", ".5", "1.0000001",
                            "36501d", "99999999999999999999", "inf", "0.1us"}) {
    INFO(wrong);
    CHECK(ParseTtl(wrong) == std::nullopt);
  }
}

TEST_CASE("TimeText: what is too long or too late is told from what is no time") {
  for (const char* far : {"36501d", "5215w", "3153600001", "36500d1us", "99999999999999999999",
                          "99999999999999999999us", "1d99999999999999999999d"}) {
    INFO(far);
    CHECK(FaultOfTtl(far) == TimeFault::kTooFar);
  }
  for (const char* wrong : {"", "0", "-1", "99999999999999999999x", "36501d30", "1."}) {
    INFO(wrong);
    CHECK(FaultOfTtl(wrong) == TimeFault::kNotUnderstood);
  }
  CHECK(FaultOfTtl("36500d") == TimeFault::kNone);
  // Milliseconds, say.
  CHECK(FaultOfMoment("1800000000000") == TimeFault::kTooFar);
  CHECK(FaultOfMoment("99999999999999999999") == TimeFault::kTooFar);
  CHECK(FaultOfMoment("10000-01-01T00:00:00Z") == TimeFault::kTooFar);
  CHECK(FaultOfMoment("253402300799") == TimeFault::kNone);
  for (const char* wrong : {"", "0", "tomorrow", "1800000000000x"}) {
    INFO(wrong);
    CHECK(FaultOfMoment(wrong) == TimeFault::kNotUnderstood);
  }
}

TEST_CASE("TimeText: moments") {
  CHECK(ParseMoment("1800000000") == 1'800'000'000'000'000);
  CHECK(ParseMoment("1800000000.25") == 1'800'000'000'250'000);
  CHECK(ParseMoment("2027-01-15T08:00:00Z") == 1'800'000'000'000'000);
  CHECK(ParseMoment("2027-01-15T09:00:00.5+01:00") == 1'800'000'000'500'000);
  CHECK(ParseMoment("1") == 1'000'000);
  for (const char* wrong : {"", "0", "-1", "1s", "infinite-future", "1969-12-31T00:00:00Z",
                            "2027-01-15", "2027-13-15T08:00:00Z", "253402300800", "tomorrow"}) {
    INFO(wrong);
    CHECK(ParseMoment(wrong) == std::nullopt);
  }
}

TEST_CASE("TimeText: as they are printed") {
  CHECK(MomentText(1'800'000'000'000'000) == "2027-01-15T08:00:00Z");
  CHECK(MomentText(1'800'000'000'000'001) == "2027-01-15T08:00:00.000001Z");
  CHECK(SecondsText(60'000'000) == "60");
  CHECK(SecondsText(59'250'000) == "59.25");
  CHECK(SecondsText(1) == "0.000001");
  CHECK(SecondsText(0) == "0");
}

}  // namespace
}  // namespace kvd::cli
