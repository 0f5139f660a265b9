#include "client/internal/observer.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("Sampler: each when the mean is 1, and one in so many by chance otherwise") {
  Sampler each(1);
  for (int i = 0; i < 100; ++i) CHECK(each.Due());
  constexpr uint32_t kMean = 64;
  constexpr int kSamples = 20'000;
  Sampler sampler(kMean);
  int operations = 0;
  int longest = 0;
  // An application with a rhythm of 64: each place in it must be met as often as the others.
  std::vector<int> met(kMean);
  for (int seen = 0, distance = 0; seen < kSamples; ++operations) {
    ++distance;
    if (!sampler.Due()) continue;
    ++met[static_cast<size_t>(operations) % kMean];
    longest = std::max(longest, distance);
    distance = 0;
    ++seen;
  }
  CHECK(longest <= 2 * static_cast<int>(kMean) - 1);
  CHECK(std::abs(static_cast<double>(operations) / kSamples - kMean) < 1);
  const double expected = static_cast<double>(kSamples) / kMean;
  for (const int count : met) CHECK(std::abs(count - expected) < 6 * std::sqrt(expected));
}

TEST_CASE("Observer: times by kind, and counters as they were told last") {
  Observer observer(ClientOptions{});
  CHECK(observer.Read().known_gets.count == 0);
  for (int64_t ns = 1; ns <= 100; ++ns) observer.Add(Observer::Kind::kKnownGet, ns);
  observer.Add(Observer::Kind::kWrite, 5000);
  ClientCounters counters;
  counters.gets = 7;
  counters.reconnects = 9;  // the last of them
  observer.Tell(counters);
  counters.gets = 8;
  const ClientObservation seen = observer.Read();
  CHECK(seen.known_gets.count == 100);
  CHECK(seen.known_gets.min_ns == 1);
  CHECK(seen.known_gets.p50_ns == 50);
  CHECK(seen.known_gets.p99_ns == 99);
  CHECK(seen.known_gets.max_ns == 100);
  CHECK(seen.known_gets.mean_ns == 50);
  CHECK(seen.writes.count == 1);
  CHECK(seen.cold_gets.count == 0);
  CHECK(seen.counters.gets == 7);
  CHECK(seen.counters.reconnects == 9);
}

TEST_CASE("Observer: with a sampling of 0 nothing is timed, and counters are told all the same") {
  ClientOptions options;
  options.latency_sampling = 0;
  Observer observer(options);
  CHECK_FALSE(observer.times());
  observer.Add(Observer::Kind::kWrite, 5);
  CHECK(observer.Read().writes.count == 0);
  int due = 0;
  for (int i = 0; i < 6400; ++i) due += observer.GetIsDue() ? 1 : 0;
  CHECK(due > 50);
  CHECK(due < 200);
}

TEST_CASE("Observer: counters are told after every one of those that are timed if each is") {
  ClientOptions options;
  options.latency_sampling = 1;
  Observer each(options);
  for (int i = 0; i < 5; ++i) {
    CHECK(each.WriteIsDue());
    CHECK(each.TellIsDue(true));
    CHECK(each.TellIsDue(false));
  }
  Observer some{ClientOptions{}};
  int told = 0;
  for (int i = 0; i < 400; ++i) told += some.TellIsDue(false) ? 1 : 0;
  CHECK(told == 100);
}

TEST_CASE("Observer: the first error of each connection is reported, and all are counted") {
  std::vector<ConnectionError> reported;
  ClientOptions options;
  options.on_connection_error = [&](const ConnectionError& error) { reported.push_back(error); };
  Observer observer(options);
  CHECK(observer.Read().first_error.cause.ok());
  observer.ConnectionFailed("shm:/x", absl::UnavailableError("the server went away"));
  observer.ConnectionFailed("shm:/x", absl::UnavailableError("no socket; start kvd"));
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].target == "shm:/x");
  CHECK(reported[0].cause.message() == "the server went away");
  CHECK_FALSE(reported[0].remedy.empty());
  observer.SessionBegins();
  observer.ConnectionFailed("shm:/x", absl::DataLossError("broke the format; report this"));
  REQUIRE(reported.size() == 2);
  CHECK(reported[1].remedy == "report this");
  const ClientObservation seen = observer.Read();
  CHECK(seen.connection_errors == 3);
  CHECK(seen.first_error.cause.code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("Observer: there is a remedy for whatever may be wrong") {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kPermissionDenied, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kDataLoss, absl::StatusCode::kInternal}) {
    CHECK_THAT(RemedyOf(absl::Status(code, "x")), Catch::Contains("connects again"));
  }
}

}  // namespace
}  // namespace kvd
