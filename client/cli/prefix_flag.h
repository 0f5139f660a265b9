// --prefix, as several commands take it, and those who write a pattern there.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "client/cli/flags.h"
#include "client/cli/invocation.h"

namespace kvd::cli {

inline constexpr Flag kPrefixFlag = {
    "prefix", '\0', FlagKind::kText,
    "P",      "",   "only keys that begin with P, as it is: * and ? stand for nothing else"};

// What a pattern as other programs take it begins with: "user:" of "user:*". All of a text that is
// no pattern.
std::string_view LiteralPart(std::string_view pattern);

// The prefix that somebody means who gives these `arguments` to a command that takes none, such as
// "user:*", or 0 MATCH "user:*" as for redis. Empty: cannot be told.
std::string_view PrefixMeant(std::span<const std::string> arguments);

// For a command that came across no key of --prefix: notes it if that looks like a pattern.
void NoteOfPattern(Invocation& run);

}  // namespace kvd::cli
