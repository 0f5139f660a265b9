// What somebody means who types a command as other stores take it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "client/cli/command.h"

namespace kvd::cli {

// What a pattern begins with that other programs take: "user:" of "user:*". All of a text that is
// no pattern.
std::string_view LiteralPart(std::string_view pattern);

// The flag of `command` that is meant by `arguments`, which are too many for it: "--prefix=user:"
// for scan's "user:*" or 0 MATCH "user:*", "--ttl=60" for put's k v EX 60 and for touch's k 60,
// "--if=absent" for NX. Empty if nothing comes to mind.
std::string FlagMeant(const Command& command, std::span<const std::string> arguments);

}  // namespace kvd::cli
