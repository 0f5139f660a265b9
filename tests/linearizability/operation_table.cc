#include "tests/linearizability/operation_table.h"

#include <utility>

namespace kvd::test {
namespace {

constexpr uint32_t Bit(KeyRole role) { return 1u << static_cast<uint32_t>(role); }
constexpr uint32_t kAny = ~0u;
constexpr uint32_t kMayExpire = Bit(KeyRole::kSmall) | Bit(KeyRole::kCold);
constexpr size_t kReadBytesMax = 65536;

template <typename Result>
absl::Status Versioned(const absl::StatusOr<Result>& result, Operation& operation) {
  if (result.ok()) operation.version = result->version;
  return result.status();
}

absl::Status Get(const RecordedCall& call, Operation& operation) {
  ItemInfo info;
  const absl::Status status = call.client.Get(call.key, call.read, &info);
  if (status.ok()) operation.version = info.version;
  return status;
}

absl::Status Exists(const RecordedCall& call, Operation&) {
  const absl::StatusOr<bool> exists = call.client.Exists(call.key);
  if (!exists.ok()) return exists.status();
  return *exists ? absl::OkStatus() : absl::NotFoundError("");
}

absl::Status GetInto(const RecordedCall& call, Operation&) {
  call.read.resize(kReadBytesMax);
  const absl::StatusOr<size_t> length = call.client.GetInto(call.key, call.read);
  if (length.ok()) call.read.resize(*length);
  return length.status();
}

// Memory of this client's that nobody else uses: what kvd may still fetch, or a device may still
// write to, stays as it is.
absl::Status TakeBuffer(const RecordedCall& call) {
  if (call.buffer.size() != 0 && !call.buffer.busy()) return absl::OkStatus();
  absl::StatusOr<Buffer> fresh = call.client.AllocateBuffer(kReadBytesMax);
  if (fresh.ok()) call.buffer = *std::move(fresh);
  return fresh.status();
}

absl::Status GetIntoBuffer(const RecordedCall& call, Operation&) {
  if (const absl::Status taken = TakeBuffer(call); !taken.ok()) return taken;
  const absl::StatusOr<size_t> length = call.client.GetInto(call.key, call.buffer);
  if (length.ok()) call.read.assign(call.buffer.data(), *length);
  return length.status();
}

absl::Status MultiGet(const RecordedCall& call, Operation& operation) {
  const std::string_view keys[] = {call.key, call.key};
  GetResult results[2];
  const absl::Status status = call.client.MultiGet(keys, results);
  if (!status.ok()) return status;
  // Each of them is a GET of its own; one is written down.
  call.read = results[1].value;
  operation.version = results[1].info.version;
  return results[1].status;
}

WriteOptions OptionsOf(const Operation& operation, const RecordedCall& call) {
  WriteOptions options;
  options.expiry_unix_us = call.expiry_unix_us;
  switch (operation.kind) {
    case OperationKind::kPutIfAbsent:
      options.condition = Condition::IfAbsent();
      break;
    case OperationKind::kPutIfPresent:
      options.condition = Condition::IfPresent();
      break;
    case OperationKind::kPutIfVersion:
    case OperationKind::kDeleteIfVersion:
      options.condition = Condition::IfVersion(operation.compare_version);
      break;
    default:
      break;
  }
  return options;
}

void StartGet(const RecordedCall& call, const Operation&, Async async) {
  call.client.StartGet(call.key, std::move(async));
}

void StartPut(const RecordedCall& call, const Operation& operation, Async async) {
  call.client.StartPut(call.key, call.written, std::move(async), OptionsOf(operation, call));
}

void StartDelete(const RecordedCall& call, const Operation& operation, Async async) {
  call.client.StartDelete(call.key, std::move(async), OptionsOf(operation, call));
}

void StartIncrement(const RecordedCall& call, const Operation& operation, Async async) {
  call.client.StartIncrement(call.key, operation.delta, std::move(async));
}

void StartAppend(const RecordedCall& call, const Operation&, Async async) {
  call.client.StartAppend(call.key, call.written, std::move(async));
}

void StartPrepend(const RecordedCall& call, const Operation&, Async async) {
  call.client.StartPrepend(call.key, call.written, std::move(async));
}

void StartTouch(const RecordedCall& call, const Operation& operation, Async async) {
  call.client.StartTouch(call.key, std::move(async), OptionsOf(operation, call));
}

absl::Status Put(const RecordedCall& call, Operation& operation) {
  return Versioned(call.client.Put(call.key, call.written, OptionsOf(operation, call)), operation);
}

absl::Status PutFrom(const RecordedCall& call, Operation& operation) {
  if (const absl::Status taken = TakeBuffer(call); !taken.ok()) return taken;
  call.written.copy(call.buffer.data(), call.buffer.size());
  const auto put =
      call.client.PutFrom(call.key, call.buffer, call.written.size(), OptionsOf(operation, call));
  return Versioned(put, operation);
}

absl::Status GetAndTouch(const RecordedCall& call, Operation& operation) {
  ItemInfo info;
  const absl::Status status =
      call.client.GetAndTouch(call.key, call.read, &info, OptionsOf(operation, call));
  if (status.ok()) operation.version = info.version;
  return status;
}

absl::Status Delete(const RecordedCall& call, Operation& operation) {
  return call.client.Delete(call.key, OptionsOf(operation, call));
}

absl::Status Increment(const RecordedCall& call, Operation& operation) {
  const auto result = call.client.Increment(call.key, operation.delta);
  if (result.ok()) operation.read = Number(result->value);
  return Versioned(result, operation);
}

absl::Status Append(const RecordedCall& call, Operation& operation) {
  return Versioned(call.client.Append(call.key, call.written), operation);
}

absl::Status Prepend(const RecordedCall& call, Operation& operation) {
  return Versioned(call.client.Prepend(call.key, call.written), operation);
}

absl::Status Touch(const RecordedCall& call, Operation& operation) {
  return Versioned(call.client.Touch(call.key, OptionsOf(operation, call)), operation);
}

constexpr uint32_t kCold = Bit(KeyRole::kCold);
constexpr uint32_t kNumbers = Bit(KeyRole::kNumber);
constexpr uint32_t kAppends = Bit(KeyRole::kAppended);
constexpr uint32_t kPrepends = Bit(KeyRole::kPrepended);
constexpr uint32_t kTouched = kMayExpire | Bit(KeyRole::kLarge);
constexpr uint32_t kRegisters = ~(kCold | kNumbers | kAppends | kPrepends);

using enum OperationKind;
constexpr RecordedKind kKinds[] = {
    {kGet, kAny, 40, Get, StartGet},
    {kGet, kAny, 5, GetInto, nullptr},
    {kGet, kAny, 5, GetIntoBuffer, nullptr},
    {kGet, kAny, 5, MultiGet, nullptr},
    {kExists, kAny, 5, Exists, nullptr},
    {kPut, kRegisters, 20, Put, StartPut},
    {kPut, kRegisters, 4, PutFrom, nullptr},
    {kPut, ~kRegisters, 3, Put, StartPut},
    {kPutIfAbsent, kRegisters | kCold, 3, Put, StartPut},
    {kPutIfPresent, kRegisters, 3, Put, StartPut},
    {kPutIfVersion, kRegisters, 8, Put, StartPut},
    {kDelete, ~kCold, 3, Delete, StartDelete},
    {kDelete, kCold, 1, Delete, StartDelete},
    {kDeleteIfVersion, kRegisters, 2, Delete, StartDelete},
    {kIncrement, kNumbers, 25, Increment, StartIncrement},
    {kAppend, kAppends, 15, Append, StartAppend},
    {kPrepend, kPrepends, 15, Prepend, StartPrepend},
    {kTouch, kMayExpire, 2, Touch, StartTouch},
    {kTouch, kTouched, 2, GetAndTouch, nullptr, /*reads=*/true},
};

}  // namespace

std::span<const RecordedKind> RecordedKinds() { return kKinds; }

bool OutcomeOf(const absl::Status& status, OperationKind kind, Outcome& outcome) {
  const bool increment = kind == OperationKind::kIncrement;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      outcome = Outcome::kOk;
      return true;
    case absl::StatusCode::kNotFound:
      outcome = Outcome::kNotFound;
      return kind != OperationKind::kPut;
    case absl::StatusCode::kAborted:
      outcome = Outcome::kConditionFailed;
      return kind == OperationKind::kPutIfAbsent || kind == OperationKind::kPutIfPresent ||
             kind == OperationKind::kPutIfVersion || kind == OperationKind::kDeleteIfVersion;
    case absl::StatusCode::kInvalidArgument:
      outcome = Outcome::kNotNumber;
      return increment;
    case absl::StatusCode::kOutOfRange:
      outcome = Outcome::kOverflow;
      return increment;
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
      outcome = Outcome::kFailed;
      return true;
    case absl::StatusCode::kDeadlineExceeded:
      outcome = IsRead(kind) ? Outcome::kFailed : Outcome::kUnknown;
      return true;
    case absl::StatusCode::kUnknown:
      outcome = Outcome::kUnknown;
      return !IsRead(kind);
    default:
      return false;
  }
}

}  // namespace kvd::test
