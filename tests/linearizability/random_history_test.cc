// The checker accepts what is linearizable by construction, and on short histories, also spoilt
// ones, it says what a trial of all orders says.
#include "tests/linearizability/random_history.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/exhaustive_check.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

std::string TextOf(const CheckResult& result) {
  std::string text;
  for (const std::string& report : result.reports) text += report;
  return text;
}

RandomHistoryOptions AnyOptions(Random& random) {
  RandomHistoryOptions options;
  options.clients = static_cast<int>(random.Between(1, 5));
  options.unknown = random.OneIn(2) ? 0.15 : 0;
  options.failed = random.OneIn(3) ? 0.1 : 0;
  options.expiring = random.OneIn(3) ? 0.5 : 0;
  options.versions_told = random.OneIn(2) ? 1 : random.NextDouble();
  options.joins = random.OneIn(2);
  options.rules.eviction = random.OneIn(4);
  options.rules.readers_differ = random.OneIn(2);
  options.rules.expiry_error_ns = static_cast<int64_t>(random.Uniform(30));
  return options;
}

// Changes something that one of the clients has seen, or when.
void Spoil(Random& random, std::vector<Operation>& history) {
  Operation& victim = history[random.Uniform(history.size())];
  const Operation& other = history[random.Uniform(history.size())];
  switch (random.Uniform(7)) {
    case 0:
      victim.read = random.OneIn(2) ? other.read : other.written;
      break;
    case 1:
      std::swap(victim.version, history[random.Uniform(history.size())].version);
      break;
    case 2:
      if (victim.outcome == Outcome::kOk && IsRead(victim.kind))
        victim.outcome = Outcome::kNotFound;
      break;
    case 3:
      victim.outcome = Outcome::kOk;
      break;
    case 4:
      victim.invoked_ns += static_cast<int64_t>(random.Uniform(60));
      if (victim.returned_ns != kNever) {
        victim.returned_ns = victim.invoked_ns + static_cast<int64_t>(random.Uniform(60));
      }
      break;
    case 5:
      victim.effect_until_ns = victim.invoked_ns + static_cast<int64_t>(random.Uniform(60));
      break;
    default:
      victim.kind = OperationKind::kLost;
      victim.outcome = Outcome::kOk;
      victim.version = 0;
      break;
  }
  if (victim.outcome != Outcome::kUnknown && victim.returned_ns == kNever) {
    victim.returned_ns = victim.invoked_ns + 10;
  }
}

}  // namespace

TEST_CASE("Checker: random linearizable histories of every kind are accepted") {
  Random random(Seed());
  for (int round = 0; round < 300; ++round) {
    RandomHistoryOptions options = AnyOptions(random);
    options.operations = static_cast<int>(random.Between(1, 400));
    options.keys = random.Between(1, 6);
    // Each lost reply may double the orders.
    options.unknown = std::min(options.unknown, 8.0 / options.operations);
    const CheckResult result =
        CheckHistory(MakeRandomHistory(random, options), {.rules = options.rules});
    INFO("round " << round << "\n" << TextOf(result));
    REQUIRE(result.verdict == Verdict::kLinearizable);
  }
}

TEST_CASE("Checker: on short histories, right and wrong, it agrees with a trial of all orders") {
  Random random(Seed());
  int right = 0;
  int wrong = 0;
  for (int round = 0; round < 40'000; ++round) {
    RandomHistoryOptions options = AnyOptions(random);
    options.operations = static_cast<int>(random.Between(2, 7));
    if (random.OneIn(2)) options.unknown *= 3;
    std::vector<Operation> history = MakeRandomHistory(random, options);
    const uint64_t spoilt = random.Uniform(3);
    for (uint64_t i = 0; i < spoilt; ++i) Spoil(random, history);
    const bool expected = IsLinearizableByTrial(history, options.rules);
    const CheckResult result = CheckHistory(history, {.rules = options.rules});
    ++(expected ? right : wrong);
    INFO("round " << round << " readers differ " << options.rules.readers_differ << " eviction "
                  << options.rules.eviction << " expiry error " << options.rules.expiry_error_ns
                  << " expected " << expected << "\n"
                  << DescribeHistory(history) << TextOf(result));
    REQUIRE(result.verdict == (expected ? Verdict::kLinearizable : Verdict::kViolation));
  }
  REQUIRE(right > 2000);
  REQUIRE(wrong > 2000);
}

TEST_CASE("Checker: a stale read planted anywhere in a long history is found") {
  Random random(Seed());
  int planted = 0;
  while (planted < 100) {
    RandomHistoryOptions options;
    options.operations = 500;
    options.joins = false;
    options.versions_told = random.OneIn(2) ? 1 : 0;
    std::vector<Operation> history = MakeRandomHistory(random, options);
    std::vector<Operation> puts;
    for (const Operation& operation : history) {
      if (operation.kind == OperationKind::kPut && operation.written.kind == Value::Kind::kBlob) {
        puts.push_back(operation);
      }
    }
    Operation& victim = history[random.Uniform(history.size())];
    if (victim.kind != OperationKind::kGet || victim.outcome != Outcome::kOk) continue;
    // A value that was overwritten before the GET began.
    const auto later = std::find_if(puts.rbegin(), puts.rend(), [&](const Operation& put) {
      return put.returned_ns < victim.invoked_ns;
    });
    const auto stale = std::find_if(later, puts.rend(), [&](const Operation& put) {
      return put.returned_ns < later->invoked_ns;
    });
    if (stale == puts.rend()) continue;
    ++planted;
    victim.read = stale->written;
    victim.version = 0;
    const CheckResult result = CheckHistory(history);
    INFO(TextOf(result));
    REQUIRE(result.verdict == Verdict::kViolation);
    REQUIRE(result.violations == 1);
  }
}

TEST_CASE("Checker: hundreds of thousands of operations take seconds") {
  Random random(Seed());
  for (const uint64_t keys : {16u, 100'000u}) {
    RandomHistoryOptions options;
    options.clients = 8;
    options.operations = 300'000;
    options.keys = keys;
    options.unknown = 0.0002;
    options.joins = false;
    const CheckResult result = CheckHistory(MakeRandomHistory(random, options));
    INFO(TextOf(result));
    REQUIRE(result.verdict == Verdict::kLinearizable);
    REQUIRE(result.unknown > 10);
    std::cout << "checked " << result.operations << " operations on " << result.keys << " keys in "
              << result.steps << " steps" << std::endl;
  }
}

}  // namespace kvd::test
