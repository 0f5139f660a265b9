// --prefix, as several commands take it.
#pragma once

#include "client/cli/flags.h"
#include "client/cli/invocation.h"

namespace kvd::cli {

inline constexpr Flag kPrefixFlag = {
    "prefix", '\0', FlagKind::kText,
    "P",      "",   "only keys that begin with P, as it is: * and ? stand for nothing else"};

// For a command that came across no key of --prefix: notes it if that looks like a pattern.
void NoteOfPattern(Invocation& run);

}  // namespace kvd::cli
