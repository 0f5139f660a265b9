// Which kvd this is.
#pragma once

#include <string_view>

namespace kvd {

// "0.1.0"; semantic versioning.
std::string_view Version();

// The commit it was built from, with "-dirty" behind it if tracked files differed from it; or
// "unknown": built outside of a git checkout, or without :commit_stamp.
std::string_view Commit();

// Commit(), as :commit_stamp overrides it.
const char* StampedCommit();

}  // namespace kvd
