// What of a process and of an environment may be shown to others. Pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kvd::cli {

// A command line as /proc/PID/cmdline has it, an argument a line. Values of flags that have to do
// with keys, secrets, tokens or passwords are left out, in either form (--keys=X, --keys X).
std::string RedactedCommandLine(std::string_view nul_separated);

// "KVCLI_SERVER=..." a line, of those variables of kvcli's flags that are set. Of those that may
// name keys, of clients or of items, or files, the name alone: "KVCLI_KEY_FILE is set".
std::string RedactedEnvironment(const std::function<const char*(const char*)>& environment);

// The text without these words, wherever they stand by themselves: "(not shown)" instead.
std::string WithoutWords(std::string_view text, std::vector<std::string> words);

// The line of /proc/PID/mountinfo for the file system that `path`, an absolute one, is on; empty if
// there is none.
std::string MountOf(std::string_view mountinfo, std::string_view path);

}  // namespace kvd::cli
