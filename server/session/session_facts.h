// What is known of a session from its admission on, and where it is counted what it does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/admission/admission.h"
#include "common/layout/hello.h"
#include "server/session/session_counters.h"

namespace kvd {

struct SessionFacts {
  uint64_t session_id = 0;
  uint64_t client_id = 0;
  std::string name;  // as the client calls itself: whatever bytes it likes
  PeerIdentity peer;
  Role role = Role::kNone;
  int64_t since_unix_us = 0;
  uint32_t credits = 0;  // requests that it may have under way
  // Null until its poller knows of it.
  std::shared_ptr<const SessionCounters> counters = {};
};

}  // namespace kvd
