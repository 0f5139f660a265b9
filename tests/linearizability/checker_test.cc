// The checker on histories made by hand: each kind of wrong answer is found, and what looks wrong
// and is not passes.
#include "tests/linearizability/checker.h"

#include <string>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

using enum OperationKind;

// Operations on one key; times in nanoseconds.
class History {
 public:
  // A completed operation of `kind`.
  Operation& Add(OperationKind kind, int64_t from, int64_t to, Outcome outcome = Outcome::kOk) {
    Operation& operation = operations_.emplace_back();
    operation.kind = kind;
    operation.invoked_ns = from;
    operation.returned_ns = to;
    operation.outcome = outcome;
    operation.client = static_cast<uint16_t>(operations_.size());
    return operation;
  }

  History& Put(uint64_t value, int64_t from, int64_t to, uint64_t version = 0) {
    Operation& put = Add(kPut, from, to);
    put.written = Blob(value);
    put.version = version;
    return *this;
  }
  History& LostPut(uint64_t value, int64_t from, int64_t effect_until = kNever) {
    Operation& put = Add(kPut, from, kNever, Outcome::kUnknown);
    put.written = Blob(value);
    put.effect_until_ns = effect_until;
    return *this;
  }
  History& ExpiringPut(uint64_t value, int64_t from, int64_t to, int64_t expiry) {
    Put(value, from, to);
    operations_.back().expiry_ns = expiry;
    return *this;
  }
  History& Get(uint64_t value, int64_t from, int64_t to, uint64_t version = 0) {
    Operation& get = Add(kGet, from, to);
    get.read = Blob(value);
    get.version = version;
    return *this;
  }
  History& Miss(int64_t from, int64_t to) {
    Add(kGet, from, to, Outcome::kNotFound);
    return *this;
  }
  History& Delete(int64_t from, int64_t to, Outcome outcome = Outcome::kOk) {
    Add(kDelete, from, to, outcome);
    return *this;
  }
  History& LostDelete(int64_t from) {
    Add(kDelete, from, kNever, Outcome::kUnknown);
    return *this;
  }
  History& PutIf(OperationKind kind, uint64_t value, int64_t from, int64_t to,
                 Outcome outcome = Outcome::kOk, uint64_t compare = 0, uint64_t version = 0) {
    Operation& put = Add(kind, from, to, outcome);
    put.written = Blob(value);
    put.compare_version = compare;
    put.version = version;
    return *this;
  }
  History& Increment(int64_t delta, int64_t sum, int64_t from, int64_t to) {
    Operation& increment = Add(kIncrement, from, to);
    increment.delta = delta;
    increment.read = Number(sum);
    return *this;
  }
  History& LostIncrement(int64_t delta, int64_t from) {
    Add(kIncrement, from, kNever, Outcome::kUnknown).delta = delta;
    return *this;
  }
  History& GetNumber(int64_t number, int64_t from, int64_t to) {
    Add(kGet, from, to).read = Number(number);
    return *this;
  }
  History& Append(uint64_t token, int64_t from, int64_t to, Outcome outcome = Outcome::kOk) {
    Add(kAppend, from, to, outcome).written = Blob(token);
    return *this;
  }
  History& GetValue(Value value, int64_t from, int64_t to) {
    Add(kGet, from, to).read = value;
    return *this;
  }
  History& Lost(int64_t from, int64_t to) {
    Add(kLost, from, to);
    return *this;
  }

  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::vector<Operation> operations_;
};

void Accept(const History& history, const Rules& rules = {}) {
  const CheckResult result = CheckHistory(history.operations(), {.rules = rules});
  INFO((result.reports.empty() ? "" : result.reports.front()));
  REQUIRE(result.verdict == Verdict::kLinearizable);
}

// Rejected, with `reason` in the report.
void Reject(const History& history, const std::string& reason = "no order",
            const Rules& rules = {}) {
  INFO(DescribeHistory(history.operations()));
  const CheckResult result = CheckHistory(history.operations(), {.rules = rules});
  REQUIRE(result.verdict == Verdict::kViolation);
  REQUIRE(result.reports.size() == 1);
  REQUIRE_THAT(result.reports.front(), Catch::Contains(reason));
}

}  // namespace

TEST_CASE("Checker: reads see the last write, or one that is going on") {
  Accept(History().Miss(0, 1).Put(1, 2, 3).Get(1, 4, 5).Put(2, 6, 20).Get(1, 7, 8).Get(2, 9, 10));
  Accept(History().Put(1, 0, 10).Put(2, 0, 10).Get(1, 11, 12));
  Accept(History().Put(1, 0, 10).Put(2, 0, 10).Get(2, 11, 12));
  Accept(History().Put(1, 0, 10).Miss(1, 5).Get(1, 2, 6).Get(1, 6, 7));
  Accept(History().Put(1, 0, 5).Delete(6, 20).Miss(7, 8).Miss(9, 10));
  Accept({});
}

TEST_CASE("Checker: a stale read is found") {
  Reject(History().Put(1, 0, 1).Put(2, 2, 3).Get(1, 4, 5));
  Reject(History().Put(1, 0, 1, 10).Put(2, 2, 3, 20).Get(1, 4, 5, 10));
  // One client has seen the new value already.
  Reject(History().Put(1, 0, 1).Put(2, 2, 20).Get(2, 3, 4).Get(1, 5, 6));
  // Two readers see two writes in opposite orders.
  Reject(History().Put(1, 0, 30).Put(2, 0, 30).Get(1, 1, 2).Get(2, 3, 4).Get(1, 5, 6));
}

TEST_CASE("Checker: a wrong miss is found") {
  Reject(History().Put(1, 0, 1).Miss(2, 3));
  Reject(History().Put(1, 0, 10).Get(1, 1, 2).Miss(3, 4));
  Reject(History().Put(1, 0, 1).Delete(2, 20).Miss(3, 4).Get(1, 5, 6));
  Accept(History().Put(1, 0, 1).Delete(2, 20).Get(1, 3, 4).Miss(5, 6));
}

TEST_CASE("Checker: a write that disappears is found") {
  Reject(History().Put(1, 0, 1).Put(2, 2, 3).Put(3, 4, 20).Get(1, 5, 6));
  Reject(History().Put(1, 0, 1).PutIf(kPutIfAbsent, 2, 2, 3));
}

TEST_CASE("Checker: values that nobody wrote, or not yet, are found") {
  Reject(History().Put(1, 0, 1).Get(7, 2, 3), "never written");
  Reject(History().GetValue({Value::Kind::kCorrupt, 0}, 0, 1), "bytes that no write has made");
  Reject(History().Get(1, 0, 1).Put(1, 2, 3), "from the future");
  History failed;
  failed.Add(kPut, 0, 1, Outcome::kFailed).written = Blob(1);
  Reject(failed.Get(1, 2, 3), "no effect");
  Reject(
      History().Put(1, 0, 1).PutIf(kPutIfAbsent, 2, 2, 3, Outcome::kConditionFailed).Get(2, 4, 5),
      "no effect");
}

TEST_CASE("Checker: a deleted value does not come back") {
  Reject(History().Put(1, 0, 1).Delete(2, 3).Get(1, 4, 5));
  Reject(History().Put(1, 0, 1).Delete(2, 3).Put(2, 4, 5).Get(1, 6, 7));
  Reject(History().Put(1, 0, 1).Delete(2, 3).Delete(4, 5));
  Reject(History().Put(1, 0, 1).Delete(2, 3, Outcome::kNotFound));
  Accept(History().Put(1, 0, 1).Delete(2, 3).Delete(4, 5, Outcome::kNotFound).Miss(6, 7));
  // Of two deletes at once one finds it.
  Reject(History().Put(1, 0, 1).Delete(2, 10).Delete(2, 10));
  Accept(History().Put(1, 0, 1).Delete(2, 10).Delete(2, 10, Outcome::kNotFound));
}

TEST_CASE("Checker: a lost reply leaves both outcomes open") {
  Accept(History().Put(1, 0, 1).LostPut(2, 2).Get(1, 4, 5).Get(1, 100, 101));
  Accept(History().Put(1, 0, 1).LostPut(2, 2).Get(2, 4, 5).Get(2, 100, 101));
  Accept(History().Put(1, 0, 1).LostPut(2, 2).Get(1, 4, 5).Get(2, 100, 101));
  Accept(History().Put(1, 0, 1).LostDelete(2).Get(1, 4, 5).Miss(6, 7));
  Accept(History().LostPut(1, 0).Delete(5, 6));
  Accept(History().LostPut(1, 0).Delete(5, 6, Outcome::kNotFound));
  // Once, and not before it was sent.
  Reject(History().Put(1, 0, 1).LostPut(2, 2).Get(2, 4, 5).Get(1, 6, 7));
  Reject(History().Put(1, 0, 1).LostPut(2, 2).Get(2, 3, 4).Put(3, 5, 6).Get(2, 7, 8));
  Reject(History().Put(1, 0, 1).Get(2, 2, 3).LostPut(2, 4), "from the future");
  Reject(History().Put(1, 0, 1).LostDelete(2).Miss(4, 5).Put(2, 6, 7).Miss(8, 9));
  Reject(History().LostPut(1, 0).Delete(5, 6).Delete(7, 8));
}

TEST_CASE("Checker: a lost write takes no effect after the death of its server") {
  Accept(History().Put(1, 0, 1).LostPut(2, 2, 10).Get(2, 5, 20));
  Accept(History().Put(1, 0, 1).LostPut(2, 2, 10).Get(2, 5, 20).Get(2, 30, 40));
  Reject(History().Put(1, 0, 1).LostPut(2, 2, 10).Get(1, 11, 12).Get(2, 13, 14));
  Reject(History().LostPut(1, 2, 10).Lost(11, 12).Miss(11, 20).Get(1, 13, 14));
}

TEST_CASE("Checker: an increment counts once") {
  Accept(History().Increment(1, 1, 0, 1).Increment(1, 2, 2, 3).GetNumber(2, 4, 5));
  Accept(History().Increment(1, 2, 0, 10).Increment(1, 1, 0, 10));
  Reject(History().Increment(1, 1, 0, 1).Increment(1, 3, 2, 3));
  Reject(History().Increment(1, 1, 0, 10).Increment(1, 1, 0, 10));
  Reject(History().Increment(1, 1, 0, 1).GetNumber(2, 2, 3));
  // Sent again after a lost reply: once or not at all, but not twice.
  Accept(History().Increment(1, 1, 0, 1).LostIncrement(5, 2).GetNumber(6, 3, 4));
  Accept(History().Increment(1, 1, 0, 1).LostIncrement(5, 2).GetNumber(1, 3, 4));
  Reject(History().Increment(1, 1, 0, 1).LostIncrement(5, 2).GetNumber(11, 3, 4));
  Reject(History().LostIncrement(5, 0).GetNumber(5, 3, 4).Increment(1, 11, 5, 6));
}

TEST_CASE("Checker: increments of what is no number, and beyond the range") {
  History text;
  text.Put(1, 0, 1).Add(kIncrement, 2, 3, Outcome::kNotNumber);
  Accept(text);
  History number;
  number.Increment(1, 1, 0, 1).Add(kIncrement, 2, 3, Outcome::kNotNumber);
  Reject(number);
  History over;
  over.Increment(INT64_MAX, INT64_MAX, 0, 1).Add(kIncrement, 2, 3, Outcome::kOverflow).delta = 1;
  Accept(over.GetNumber(INT64_MAX, 4, 5));
  Reject(over.GetNumber(INT64_MIN, 6, 7));
}

TEST_CASE("Checker: a version is set against once") {
  Accept(History()
             .Put(1, 0, 1, 10)
             .PutIf(kPutIfVersion, 2, 2, 9, Outcome::kOk, 10, 20)
             .PutIf(kPutIfVersion, 3, 2, 9, Outcome::kConditionFailed, 10)
             .Get(2, 11, 12, 20));
  Reject(History()
             .Put(1, 0, 1, 10)
             .PutIf(kPutIfVersion, 2, 2, 9, Outcome::kOk, 10, 20)
             .PutIf(kPutIfVersion, 3, 2, 9, Outcome::kOk, 10, 30));
  Reject(History()
             .Put(1, 0, 1, 10)
             .PutIf(kPutIfVersion, 3, 2, 9, Outcome::kConditionFailed, 10)
             .Get(1, 11, 12, 10));
  // The other one's reply was lost, so it may have been first.
  Accept(History()
             .Put(1, 0, 1, 10)
             .LostPut(2, 2)
             .PutIf(kPutIfVersion, 3, 3, 9, Outcome::kConditionFailed, 10)
             .Get(2, 11, 12, 20));
  Reject(History()
             .PutIf(kPutIfAbsent, 1, 0, 9, Outcome::kOk)
             .PutIf(kPutIfAbsent, 2, 0, 9, Outcome::kOk));
  Accept(History()
             .PutIf(kPutIfAbsent, 1, 0, 9, Outcome::kOk)
             .PutIf(kPutIfAbsent, 2, 0, 9, Outcome::kConditionFailed));
}

TEST_CASE("Checker: what is appended is there once, in its order") {
  const Value one = Appended(Blob(1), Blob(2));
  const Value two = Appended(one, Blob(3));
  Accept(History().Put(1, 0, 1).Append(2, 2, 9).Append(3, 2, 9).GetValue(two, 10, 11));
  Accept(History().Put(1, 0, 1).Append(2, 2, 3).Append(3, 4, 9).GetValue(one, 5, 6));
  Accept(History().Append(2, 0, 1).Append(3, 2, 3).GetValue(Appended(Blob(2), Blob(3)), 4, 5));
  Reject(History().Append(2, 0, 1).Miss(2, 3));
  Reject(History().Put(1, 0, 1).Append(3, 2, 3).Append(2, 4, 5).GetValue(two, 10, 11));
  Reject(History().Put(1, 0, 1).Append(2, 2, 3).GetValue(Appended(one, Blob(2)), 4, 5));
  REQUIRE_FALSE(Appended(Blob(1), Blob(2)) == Prepended(Blob(2), Blob(1)));
}

TEST_CASE("Checker: versions grow over the life of a key") {
  Accept(History().Put(1, 0, 9, 20).Put(2, 0, 9, 10).Get(1, 10, 11, 20));
  Reject(History().Put(1, 0, 9, 20).Put(2, 0, 9, 10).Get(2, 10, 11, 10));
  Reject(History().Put(1, 0, 1, 20).Put(2, 2, 3, 10), "versions went back");
  Reject(History().Put(1, 0, 1, 20).Delete(2, 3).Put(2, 4, 5, 10), "versions went back");
  Reject(History().Put(1, 0, 9, 20).Put(2, 0, 9, 20), "two writes got version 20");
  Reject(History().Put(1, 0, 1, 20).Get(1, 2, 3, 30), "returned version 30");
  // A lost write has one version, whoever reads it.
  Reject(History().LostPut(1, 0).Get(1, 2, 3, 10).Get(1, 4, 5, 11), "returned version 11");
  Reject(History().Put(1, 0, 1, 20).LostPut(2, 2).Get(2, 3, 4, 10), "versions went back");
}

TEST_CASE("Checker: an item with an expiry goes at that time, give or take the error") {
  const Rules rules{.eviction = false, .expiry_error_ns = 10, .readers_differ = false};
  Accept(History().ExpiringPut(1, 0, 1, 100).Get(1, 105, 106).Miss(107, 108), rules);
  Accept(History().ExpiringPut(1, 0, 1, 100).Miss(85, 90), rules);
  Accept(History().ExpiringPut(1, 0, 1, 100).Get(1, 109, 150), rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Miss(80, 89), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Get(1, 111, 112), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Miss(95, 96).Get(1, 97, 98), "no order", rules);
  // The rule is for items with an expiry, and for that expiry.
  Reject(History().Put(1, 0, 1).Miss(95, 96), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Put(2, 2, 3).Miss(95, 96), "no order", rules);
  // Who waits past a reader that came too late is too late as well.
  Accept(History().ExpiringPut(1, 0, 1, 100).Get(1, 50, 200).Miss(150, 160), rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Get(1, 120, 200), "no order", rules);
}

TEST_CASE(
    "Checker: readers may differ about an expiry, within the error and until the next write") {
  const Rules rules{.eviction = false, .expiry_error_ns = 10, .readers_differ = true};
  Accept(History().ExpiringPut(1, 0, 1, 100).Miss(95, 96).Get(1, 97, 98).Miss(99, 100), rules);
  Accept(History().ExpiringPut(1, 0, 1, 100).Delete(95, 96, Outcome::kNotFound).Get(1, 97, 98),
         rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Miss(95, 96).Get(1, 111, 112), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Miss(80, 89).Get(1, 97, 98), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Put(2, 92, 93).Get(1, 97, 98), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Delete(92, 93).Get(1, 97, 98), "no order", rules);
  Reject(History().ExpiringPut(1, 0, 1, 100).Put(2, 92, 93).Miss(97, 98), "no order", rules);
}

TEST_CASE("Checker: an evicted item goes at any time, and stays away") {
  const Rules rules{.eviction = true, .expiry_error_ns = 0, .readers_differ = false};
  Accept(History().Put(1, 0, 1).Get(1, 2, 3).Miss(4, 5), rules);
  Accept(History().Put(1, 0, 1).Delete(2, 3, Outcome::kNotFound), rules);
  Accept(History().Put(1, 0, 1).Miss(2, 3).Put(2, 4, 5).Get(2, 6, 7), rules);
  Accept(History().Put(1, 0, 9).Miss(2, 3).Get(1, 4, 5).Miss(6, 7), rules);
  Reject(History().Put(1, 0, 1).Miss(2, 3).Get(1, 4, 5), "no order", rules);
  Reject(History().Put(1, 0, 1).Put(2, 2, 3).Get(1, 4, 5), "no order", rules);
  Reject(History().Put(1, 0, 1).Get(1, 2, 3).Miss(4, 5), "no order");
}

TEST_CASE("Checker: a restart loses everything, once") {
  Accept(History().Put(1, 0, 1).Lost(2, 9).Miss(10, 11).Put(2, 12, 13).Get(2, 14, 15));
  Accept(History().Put(1, 0, 1).Lost(2, 9).Get(1, 3, 4).Miss(5, 6));
  Reject(History().Put(1, 0, 1).Lost(2, 9).Get(1, 10, 11));
  Reject(History().Put(1, 0, 1).Lost(2, 9).Miss(3, 4).Get(1, 5, 6));
  Reject(History().Put(1, 0, 1).Lost(2, 9).Miss(10, 11).Put(2, 12, 13).Miss(14, 15));
}

TEST_CASE("Checker: keys are judged each by itself") {
  History history;
  for (uint64_t key = 0; key < 10; ++key) {
    Operation& put = history.Add(kPut, 0, 1);
    put.key = key;
    put.written = Blob(key + 1);
    Operation& get = history.Add(kGet, 2, 3);
    get.key = key;
    get.read = Blob(key == 3 || key == 5 ? 99 : key + 1);
  }
  const CheckResult result = CheckHistory(history.operations());
  REQUIRE(result.verdict == Verdict::kViolation);
  REQUIRE(result.keys == 10);
  REQUIRE(result.violations == 2);
  REQUIRE_THAT(result.reports.front(), Catch::Contains("key 3"));
}

TEST_CASE("Checker: a search that reaches its bound says that it does not know") {
  History history;
  for (int64_t i = 0; i < 30; ++i) history.LostIncrement(int64_t{1} << i, i);
  history.GetNumber(-1, 100, 101);
  const CheckResult result = CheckHistory(history.operations(), {.rules = {}, .steps_max = 10'000});
  REQUIRE(result.verdict == Verdict::kUndecided);
  REQUIRE(result.undecided == 1);
  REQUIRE_FALSE(result.ok());
}

}  // namespace kvd::test
