// Connecting to a kvd that was started a moment ago.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "client/cli/store.h"

namespace kvd::cli {

inline constexpr std::chrono::milliseconds kStartPatience{1000};

// The socket that `target` names; empty: it names none, but another host.
std::string SocketPathOf(std::string_view target);

// What waiting is made of, so that a test need not.
struct Patience {
  std::function<std::chrono::nanoseconds()> now;
  std::function<void(std::chrono::nanoseconds)> sleep;
  std::function<bool()> interrupted;
};

// `connect`, tried again for up to kStartPatience (or the deadline, if that is sooner) for as long
// as it answers Unavailable: `kvd & kvcli put k v` finds no socket yet, or one of a dead kvd. Only
// for a socket of this host whose directory exists: elsewhere nobody is about to listen. A target
// that was waited for in vain is tried once from then on, until it answers: of many commands in a
// row only the first waits. The error is the last one.
Connector ConnectPatiently(Connector connect, Patience patience);

// By the clock of this process; a Ctrl-C ends it.
Patience RealPatience();

}  // namespace kvd::cli
