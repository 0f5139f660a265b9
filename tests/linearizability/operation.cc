#include "tests/linearizability/operation.h"

#include "common/base/hash.h"

namespace kvd::test {

// Not commutative, and another function for each side: order matters, as it does for bytes.
Value Appended(Value value, Value token) {
  return Blob(Mix64(Mix64(value.word) + 3 * token.word + 0x9E3779B97F4A7C15));
}

Value Prepended(Value token, Value value) {
  return Blob(Mix64(Mix64(value.word) + 5 * token.word + 0xC2B2AE3D27D4EB4F));
}

const char* NameOf(OperationKind kind) {
  static constexpr const char* kNames[kOperationKinds] = {"GET",
                                                          "EXISTS",
                                                          "PUT",
                                                          "PUT if absent",
                                                          "PUT if present",
                                                          "PUT if version",
                                                          "DELETE",
                                                          "DELETE if version",
                                                          "INCREMENT",
                                                          "APPEND",
                                                          "PREPEND",
                                                          "TOUCH",
                                                          "loss"};
  return kNames[static_cast<int>(kind)];
}

const char* NameOf(Outcome outcome) {
  static constexpr const char* kNames[] = {
      "unknown", "failed", "ok", "not found", "condition failed", "not a number", "overflow"};
  return kNames[static_cast<int>(outcome)];
}

}  // namespace kvd::test
