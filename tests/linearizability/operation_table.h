// The operations that recording clients carry out: what each is called with and what it learns
// stands in one line of a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "client/kv_client.h"
#include "tests/linearizability/operation.h"
#include "tests/linearizability/recorded_value.h"

namespace kvd::test {

// One call: its key, the bytes that it writes, and where what it reads is put.
struct RecordedCall {
  Client& client;
  const std::string& key;
  const std::string& written;
  std::string& read;
  Buffer& buffer;          // registered memory, made when it is first needed
  int64_t expiry_unix_us;  // 0: none
};

struct RecordedKind {
  OperationKind kind;
  uint32_t roles;   // bit per KeyRole: the keys that it is used on
  uint32_t weight;  // how often, relative to the others of the role
  // Calls the client. Fills in the version and, where it is no bytes, what was read.
  absl::Status (*call)(const RecordedCall& call, Operation& operation);
  // Starts the same without waiting for it; null: there is no such call.
  void (*start)(const RecordedCall& call, const Operation& operation, Async async);
  // A write that also reads: as a GET of its own, at the same time, which found the version that
  // was written unless the write had to be repeated.
  bool reads = false;
};

std::span<const RecordedKind> RecordedKinds();

// What a status means for the history. False: it is none that the contract of kv_client.h has for
// this operation.
bool OutcomeOf(const absl::Status& status, OperationKind kind, Outcome& outcome);

}  // namespace kvd::test
