#include "tests/linearizability/checker.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "tests/linearizability/key_history.h"

namespace kvd::test {
namespace {

constexpr int kShownBefore = 6;
constexpr int kMatterShown = 8;
constexpr int kShownBeside = 6;
constexpr int kShownAfter = 6;

std::string TextOf(Value value) {
  if (value.kind == Value::Kind::kNumber) {
    return absl::StrFormat("%d", static_cast<int64_t>(value.word));
  }
  return value.kind == Value::Kind::kCorrupt ? "corrupt bytes"
                                             : absl::StrFormat("value %x", value.word);
}

std::string Describe(const Operation& operation, int64_t origin_ns) {
  std::string text = absl::StrFormat("  %12d ", operation.invoked_ns - origin_ns);
  text += operation.returned_ns == kNever
              ? std::string("       never")
              : absl::StrFormat("%12d", operation.returned_ns - origin_ns);
  text += absl::StrFormat("  client %d  %s", operation.client, NameOf(operation.kind));
  if (IsPut(operation.kind)) text += " " + TextOf(operation.written);
  if (operation.kind == OperationKind::kIncrement) text += absl::StrFormat(" %+d", operation.delta);
  if (operation.kind == OperationKind::kAppend || operation.kind == OperationKind::kPrepend) {
    text += absl::StrFormat(" token %x", operation.written.word);
  }
  if (operation.compare_version != 0) text += absl::StrFormat(" of %d", operation.compare_version);
  if (operation.effect_until_ns != kNever) {
    text += absl::StrFormat(" effective until %d", operation.effect_until_ns - origin_ns);
  }
  if (operation.expiry_ns != kNever) {
    text += absl::StrFormat(" expiring %d", operation.expiry_ns - origin_ns);
  }
  text += absl::StrFormat(" -> %s", NameOf(operation.outcome));
  if (operation.outcome != Outcome::kOk) return text;
  if (operation.kind == OperationKind::kGet || operation.kind == OperationKind::kIncrement) {
    text += " " + TextOf(operation.read);
  }
  if (operation.version != 0) text += absl::StrFormat(" version %d", operation.version);
  return text;
}

// Of the operations around `stuck`, which is the one at `middle`, those that may have to do with
// it: the last few before it, the writes and misses beside it, and the first few after its return.
std::vector<const Operation*> Nearby(const std::vector<Operation>& sorted, size_t middle) {
  std::vector<const Operation*> nearby;
  const auto may_matter = [](const Operation& operation) {
    return !IsRead(operation.kind) || operation.outcome != Outcome::kOk;
  };
  int any = kShownBefore;
  int matter = kMatterShown;
  for (size_t i = middle; i-- > 0 && matter > 0; --any) {
    if (any > 0 || may_matter(sorted[i])) nearby.push_back(&sorted[i]);
    matter -= may_matter(sorted[i]) ? 1 : 0;
  }
  std::reverse(nearby.begin(), nearby.end());
  int beside = kShownBeside;
  int after = kShownAfter;
  matter = kMatterShown;
  for (size_t i = middle; i < sorted.size() && after > 0; ++i) {
    const bool returned = sorted[i].invoked_ns > sorted[middle].returned_ns;
    int& left = returned ? after : may_matter(sorted[i]) ? matter : beside;
    if (left-- > 0) nearby.push_back(&sorted[i]);
  }
  return nearby;
}

// What was going on when the search found no place for `stuck`.
std::string Report(const Operation& stuck, const std::string& reason,
                   const std::vector<Operation>& sorted) {
  std::string text = absl::StrFormat("key %d: %s\n", stuck.key, reason);
  text += "  nanoseconds from the invocation of the operation marked with *; invoked, returned\n";
  const auto at = std::find_if(sorted.begin(), sorted.end(), [&](const Operation& operation) {
    return operation.invoked_ns >= stuck.invoked_ns;
  });
  for (const Operation* operation : Nearby(sorted, static_cast<size_t>(at - sorted.begin()))) {
    const bool marked = operation->invoked_ns == stuck.invoked_ns &&
                        operation->client == stuck.client && operation->kind == stuck.kind;
    text += Describe(*operation, stuck.invoked_ns) + (marked ? " *\n" : "\n");
  }
  return text;
}

void Fail(CheckResult& result, Verdict verdict, const CheckOptions& options, std::string report) {
  if (verdict == Verdict::kViolation) {
    ++result.violations;
    result.verdict = verdict;
  } else {
    ++result.undecided;
    if (result.verdict == Verdict::kLinearizable) result.verdict = verdict;
  }
  if (result.reports.size() < options.reports_max) result.reports.push_back(std::move(report));
}

void CheckKey(const std::vector<Operation>& operations, const CheckOptions& options,
              CheckResult& result) {
  const KeyHistory history = PrepareKey(operations);
  if (!history.violation.empty()) {
    Fail(result, Verdict::kViolation, options,
         absl::StrFormat("key %d: %s\n", operations.front().key, history.violation));
    return;
  }
  const SearchResult search = Search(history, options.rules, options.steps_max);
  result.steps += search.steps;
  if (search.verdict == Verdict::kLinearizable) return;
  const char* const reason = search.verdict == Verdict::kViolation
                                 ? "no order of the operations explains what they returned"
                                 : "undecided: the search was given up";
  Fail(result, search.verdict, options,
       Report(history.required[search.stuck_at], reason, operations));
}

}  // namespace

CheckResult CheckHistory(std::vector<Operation> history, const CheckOptions& options) {
  CheckResult result;
  result.operations = history.size();
  std::sort(history.begin(), history.end(), [](const Operation& a, const Operation& b) {
    return std::tie(a.key, a.invoked_ns) < std::tie(b.key, b.invoked_ns);
  });
  for (const Operation& operation : history) {
    result.unknown += operation.outcome == Outcome::kUnknown && !IsRead(operation.kind);
  }
  for (auto from = history.begin(); from != history.end();) {
    const auto to = std::find_if(from, history.end(), [&](const Operation& operation) {
      return operation.key != from->key;
    });
    ++result.keys;
    CheckKey(std::vector<Operation>(from, to), options, result);
    from = to;
  }
  return result;
}

std::string DescribeHistory(const std::vector<Operation>& history) {
  std::string text;
  for (const Operation& operation : history) {
    text += Describe(operation, history.front().invoked_ns) + "\n";
  }
  return text;
}

}  // namespace kvd::test
