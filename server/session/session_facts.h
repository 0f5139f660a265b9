// What is known of a session from its admission on.
#pragma once

#include <cstdint>
#include <string>

#include "common/admission/admission.h"
#include "common/layout/hello.h"

namespace kvd {

struct SessionFacts {
  uint64_t session_id = 0;
  uint64_t client_id = 0;
  std::string name;  // as the client calls itself: whatever bytes it likes
  PeerIdentity peer;
  Role role = Role::kNone;
  int64_t since_unix_us = 0;
  uint32_t credits = 0;         // requests that it may have under way
  uint64_t reported_reads = 0;  // that it did by itself, as far as it told
};

}  // namespace kvd
