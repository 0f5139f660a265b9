#include "tests/linearizability/exhaustive_check.h"

#include <algorithm>

namespace kvd::test {
namespace {

bool TryFrom(std::vector<Operation> left, const KeyState& state, int64_t now_ns,
             const Rules& rules) {
  int64_t first_return_ns = kNever;
  bool any_required = false;
  for (const Operation& operation : left) {
    if (operation.outcome == Outcome::kUnknown) continue;
    any_required = true;
    first_return_ns = std::min(first_return_ns, operation.returned_ns);
  }
  if (!any_required) return true;
  for (size_t i = 0; i < left.size(); ++i) {
    const Operation operation = left[i];
    const int64_t at_ns = std::max(now_ns, operation.invoked_ns);
    KeyState after;
    if (operation.invoked_ns > first_return_ns) continue;
    if (operation.outcome == Outcome::kUnknown && at_ns > operation.effect_until_ns) continue;
    if (!Step(state, operation, rules, at_ns, after)) continue;
    std::vector<Operation> rest = left;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (TryFrom(rest, after, at_ns, rules)) return true;
  }
  const int64_t from_ns = MayVanishFromNs(state, rules);
  return from_ns != kNever && from_ns <= first_return_ns &&
         TryFrom(left, VanishedBy(first_return_ns, state, rules), std::max(now_ns, from_ns), rules);
}

// The version that a write of unknown outcome got, if a GET has told it.
uint64_t VersionTold(const Operation& write, const std::vector<Operation>& operations) {
  uint64_t version = 0;
  for (const Operation& other : operations) {
    const bool other_names = other.kind == OperationKind::kAppend ||
                             other.kind == OperationKind::kPrepend ||
                             other.kind == OperationKind::kTouch;
    if (other_names) return 0;
    if (other.kind == OperationKind::kGet && other.outcome == Outcome::kOk &&
        other.read == write.written && other.version != 0) {
      version = other.version;
    }
  }
  return version;
}

}  // namespace

bool IsLinearizableByTrial(const std::vector<Operation>& operations, const Rules& rules) {
  std::vector<Operation> left;
  for (const Operation& operation : operations) {
    if (operation.outcome == Outcome::kFailed) continue;
    if (operation.outcome == Outcome::kUnknown && IsRead(operation.kind)) continue;
    left.push_back(operation);
    if (operation.outcome == Outcome::kUnknown) left.back().version = 0;
    if (operation.outcome == Outcome::kUnknown && IsPut(operation.kind) &&
        operation.written.kind == Value::Kind::kBlob) {
      left.back().version = VersionTold(operation, operations);
    }
  }
  return TryFrom(left, {}, std::numeric_limits<int64_t>::min(), rules);
}

}  // namespace kvd::test
