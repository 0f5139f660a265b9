// One operation of a client on one key, as a client saw it: what a history consists of.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace kvd::test {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

enum class OperationKind : uint8_t {
  kGet,
  kExists,
  kPut,
  kPutIfAbsent,
  kPutIfPresent,
  kPutIfVersion,
  kDelete,
  kDeleteIfVersion,
  kIncrement,
  kAppend,
  kPrepend,
  kTouch,
  kLost,  // no client's: the store lost what it had, as by a restart
};
inline constexpr int kOperationKinds = static_cast<int>(OperationKind::kLost) + 1;

enum class Outcome : uint8_t {
  kUnknown,  // it has no effect, or takes effect once, at any time after its invocation
  kFailed,   // it has no effect, and learned nothing
  kOk,
  kNotFound,         // the key had no item
  kConditionFailed,  // it had one, or none, or another version, as the kind has it
  kNotNumber,        // kIncrement of something else
  kOverflow,         // kIncrement beyond 64 bits
};

// A value, in so many bits as a checker needs. Two values are the same exactly if both members are.
struct Value {
  enum class Kind : uint64_t {
    kBlob,     // word: names the write that made it; no two writes make the same
    kNumber,   // word: the number, in two's complement
    kCorrupt,  // bytes that no write has made
  };
  Kind kind = Kind::kBlob;
  uint64_t word = 0;
  bool operator==(const Value&) const = default;
};

constexpr Value Blob(uint64_t word) { return {Value::Kind::kBlob, word}; }
constexpr Value Number(int64_t number) {
  return {Value::Kind::kNumber, static_cast<uint64_t>(number)};
}

// What a blob is once `token` has been put behind it, or before it.
Value Appended(Value value, Value token);
Value Prepended(Value token, Value value);

// Plain bytes: recorders write it into memory that outlives their process.
struct Operation {
  uint64_t key = 0;
  int64_t invoked_ns = 0;  // all times are of one monotonic clock
  int64_t returned_ns = kNever;
  // If the outcome is unknown: the moment after which it cannot take effect any more, as when the
  // only server it was sent to is dead.
  int64_t effect_until_ns = kNever;
  OperationKind kind = OperationKind::kGet;
  Outcome outcome = Outcome::kUnknown;
  uint16_t client = 0;
  int32_t status_code = 0;  // the client's status, for the recorder's own use

  // What was asked for.
  Value written;                 // a kPut's value, kAppend's and kPrepend's token
  int64_t delta = 0;             // kIncrement
  uint64_t compare_version = 0;  // kPutIfVersion, kDeleteIfVersion
  int64_t expiry_ns = kNever;    // kPut of any kind, kTouch

  // What came back, if the outcome is kOk.
  Value read;            // kGet, kIncrement
  uint64_t version = 0;  // of the item that was written or read; 0: not told
};
static_assert(std::is_trivially_copyable_v<Operation>);

constexpr bool IsRead(OperationKind kind) {
  return kind == OperationKind::kGet || kind == OperationKind::kExists;
}

// True if the value after it is `written`, whatever was there before.
constexpr bool IsPut(OperationKind kind) {
  return kind >= OperationKind::kPut && kind <= OperationKind::kPutIfVersion;
}

// True if `operation` made an item of the version that it tells.
constexpr bool MadeVersion(const Operation& operation) {
  return operation.version != 0 && operation.outcome == Outcome::kOk && !IsRead(operation.kind) &&
         operation.kind != OperationKind::kDelete &&
         operation.kind != OperationKind::kDeleteIfVersion &&
         operation.kind != OperationKind::kLost;
}

const char* NameOf(OperationKind kind);
const char* NameOf(Outcome outcome);

}  // namespace kvd::test
