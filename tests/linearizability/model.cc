#include "tests/linearizability/model.h"

namespace kvd::test {
namespace {

// Matches a version that came with a reply against the item's; where the item's is not known, it is
// known from now on.
bool MeetVersion(uint64_t version, KeyState& state) {
  if (version == 0) return true;
  if (state.version_known) return version == state.version;
  if (version <= state.version) return false;
  state.version = version;
  state.version_known = true;
  return true;
}

// A write's own version must be above all before.
bool TakeVersion(const Operation& operation, KeyState& after) {
  after.version_known = operation.version != 0;
  if (!after.version_known) return true;
  if (operation.version <= after.version) return false;
  after.version = operation.version;
  return true;
}

KeyState Vanished(const KeyState& state) {
  KeyState after;
  after.version = state.version;
  return after;
}

// The expiry that a write keeps which does not set one.
int64_t KeptExpiryNs(const KeyState& state) { return state.present ? state.expiry_ns : kNever; }

bool Write(const Operation& operation, Value value, int64_t expiry_ns, KeyState& after) {
  after.present = true;
  after.lingers = false;
  after.value = value;
  after.expiry_ns = expiry_ns;
  return TakeVersion(operation, after);
}

bool Erase(KeyState& after) {
  after = Vanished(after);
  return true;
}

bool AddOverflows(int64_t a, int64_t b, int64_t& sum) { return __builtin_add_overflow(a, b, &sum); }

bool StepIncrement(const Operation& operation, KeyState& after) {
  const bool number = !after.present || after.value.kind == Value::Kind::kNumber;
  int64_t sum = 0;
  const int64_t before = after.present ? static_cast<int64_t>(after.value.word) : 0;
  const bool overflow = number && AddOverflows(before, operation.delta, sum);
  switch (operation.outcome) {
    case Outcome::kNotNumber:
      return !number;
    case Outcome::kOverflow:
      return overflow;
    case Outcome::kOk:
      if (!number || overflow || operation.read != Number(sum)) return false;
      break;
    case Outcome::kUnknown:
      if (!number || overflow) return false;
      break;
    default:
      return false;
  }
  return Write(operation, Number(sum), KeptExpiryNs(after), after);
}

// Where there is no item, the token alone becomes one.
bool StepJoin(const Operation& operation, KeyState& after) {
  if (operation.outcome != Outcome::kOk && operation.outcome != Outcome::kUnknown) return false;
  Value joined = operation.written;
  if (after.present) {
    joined = operation.kind == OperationKind::kAppend ? Appended(after.value, operation.written)
                                                      : Prepended(operation.written, after.value);
  }
  return Write(operation, joined, KeptExpiryNs(after), after);
}

// Whether the condition of a conditional write holds. A version that is not known may be any.
bool MayHold(const Operation& operation, KeyState& after) {
  switch (operation.kind) {
    case OperationKind::kPutIfAbsent:
      return !after.present;
    case OperationKind::kPutIfVersion:
    case OperationKind::kDeleteIfVersion:
      return after.present && MeetVersion(operation.compare_version, after);
    case OperationKind::kPutIfPresent:
    case OperationKind::kDelete:
    case OperationKind::kTouch:
      return after.present;
    default:
      return true;
  }
}

bool MayFail(const Operation& operation, const KeyState& state) {
  switch (operation.kind) {
    case OperationKind::kPutIfAbsent:
      return state.present;
    case OperationKind::kPutIfVersion:
    case OperationKind::kDeleteIfVersion:
      return !state.present || !state.version_known || state.version != operation.compare_version;
    case OperationKind::kPutIfPresent:
      return !state.present;
    default:
      return false;
  }
}

bool StepConditional(const Operation& operation, KeyState& after) {
  if (operation.outcome == Outcome::kNotFound) {
    return !after.present && operation.kind != OperationKind::kPut &&
           operation.kind != OperationKind::kPutIfAbsent;
  }
  if (operation.outcome == Outcome::kConditionFailed) return MayFail(operation, after);
  if (operation.outcome != Outcome::kOk && operation.outcome != Outcome::kUnknown) return false;
  if (!MayHold(operation, after)) return false;
  if (IsPut(operation.kind)) {
    return Write(operation, operation.written, operation.expiry_ns, after);
  }
  if (operation.kind == OperationKind::kTouch) {
    return Write(operation, after.value, operation.expiry_ns, after);
  }
  return Erase(after);
}

bool StepRead(const Operation& operation, const Rules& rules, KeyState& after) {
  if (operation.outcome == Outcome::kNotFound) {
    const bool may_differ = rules.readers_differ && after.expiry_ns != kNever &&
                            operation.returned_ns >= after.expiry_ns - rules.expiry_error_ns;
    return !after.present || may_differ;
  }
  if (operation.outcome != Outcome::kOk || (!after.present && !after.lingers)) return false;
  if (operation.kind == OperationKind::kExists) return true;
  return after.value == operation.read && MeetVersion(operation.version, after);
}

}  // namespace

bool Step(const KeyState& state, const Operation& operation, const Rules& rules, int64_t now_ns,
          KeyState& after) {
  after = state;
  if (after.expiry_ns != kNever && now_ns > after.expiry_ns + rules.expiry_error_ns) {
    after = Vanished(after);
  }
  switch (operation.kind) {
    case OperationKind::kGet:
    case OperationKind::kExists:
      return StepRead(operation, rules, after);
    case OperationKind::kIncrement:
      return StepIncrement(operation, after);
    case OperationKind::kAppend:
    case OperationKind::kPrepend:
      return StepJoin(operation, after);
    case OperationKind::kLost:
      return Erase(after);
    default:
      return StepConditional(operation, after);
  }
}

int64_t MayVanishFromNs(const KeyState& state, const Rules& rules) {
  if (!state.present) return kNever;
  if (rules.eviction) return std::numeric_limits<int64_t>::min();
  return state.expiry_ns == kNever ? kNever : state.expiry_ns - rules.expiry_error_ns;
}

KeyState VanishedBy(int64_t by_ns, const KeyState& state, const Rules& rules) {
  const bool expired =
      state.expiry_ns != kNever && state.expiry_ns - rules.expiry_error_ns <= by_ns;
  if (!rules.readers_differ || !expired) return Vanished(state);
  KeyState after = state;
  after.present = false;
  after.lingers = true;
  return after;
}

}  // namespace kvd::test
