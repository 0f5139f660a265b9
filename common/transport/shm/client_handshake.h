// The client's part of the handshake: from a path to a checked admission.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/admission/access_rules.h"
#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"
#include "common/transport/shm/session_segment.h"

namespace kvd {

// Everything that an admitted session consists of.
struct ShmAdmission {
  Welcome welcome{};
  UniqueFd socket;
  MappedMemory region;   // read-only
  MappedMemory segment;  // laid out as `layout` says
  SessionLayout layout;
};

// As ShmClientChannel::Connect.
absl::StatusOr<ShmAdmission> ShmHandshake(const std::string& path, const Hello& hello,
                                          std::shared_ptr<const AccessKey> key,
                                          int64_t deadline_ns);

}  // namespace kvd
