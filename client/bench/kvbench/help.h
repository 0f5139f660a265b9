// --help, --version and --completion.
#pragma once

#include <string>
#include <string_view>

namespace kvd::bench {

std::string HelpText(std::string_view program, std::string_view summary);
std::string VersionText(std::string_view program);

// A script that makes `shell`, bash or zsh, complete the flags and those of their values that are
// words.
std::string CompletionText(std::string_view program, std::string_view shell);

}  // namespace kvd::bench
