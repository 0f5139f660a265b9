// What a command is: its texts, its flags, and what it does.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "client/cli/exit_code.h"
#include "client/cli/flags.h"
#include "client/cli/store.h"

namespace kvd::cli {

class Invocation;

struct Command {
  std::string_view name;
  std::string_view arguments;  // "KEY [VALUE|-|@FILE]"
  std::string_view summary;    // a line in the list of commands
  std::string_view details;    // lines; may be empty
  // What it means for this command that a key is not there, and what to do; empty: no more than for
  // any other.
  std::string_view not_found = {};
  std::string_view examples;  // lines
  std::span<const Flag> flags;
  size_t arguments_min;
  size_t arguments_max;
  ExitCode (*run)(Invocation&);
  bool for_administration = false;  // looks after the server, also where that is full
};

inline constexpr size_t kAnyNumber = static_cast<size_t>(-1);

// All commands, as help lists them.
std::span<const Command* const> AllCommands();

// Null if there is none of that name. Case does not matter, as at redis' prompt.
const Command* FindCommand(std::string_view name);

// What may have been meant: "put" for "putt" and for "set", "put KEY VALUE --ttl=TIME" for "setex".
// Empty if nothing comes to mind.
std::string_view NearestCommand(std::string_view name);

// Flags that every command takes.
std::span<const Flag> GlobalFlags();

// What they say of how to connect.
ConnectOptions ConnectOptionsOf(const FlagValues& flags);

}  // namespace kvd::cli
