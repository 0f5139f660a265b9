// memfds whose size can never change again, so that neither side can make the other's access fault
// (SIGBUS).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd {

struct SealedMemoryOptions {
  const char* name = "kvd";  // seen in /proc/PID/maps
  uint64_t bytes = 0;
  bool reserve = false;  // get all pages now, so that a shortage is an error and not a fault later
};

// Makes a memfd of that size, sealed with SHRINK, GROW and SEAL. ResourceExhausted: no descriptor
// or no memory.
absl::StatusOr<UniqueFd> MakeSealedMemory(const SealedMemoryOptions& options);

// Checks a descriptor that came from a peer: memory (a memfd or tmpfs file) of at least `bytes`
// bytes that is sealed against shrinking. InvalidArgument says what it is instead.
absl::Status CheckSealedMemory(int fd, uint64_t bytes);

}  // namespace kvd
