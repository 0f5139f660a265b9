// Which kvd this is.
#pragma once

#include <string_view>

namespace kvd {

// "0.1.0"; semantic versioning.
std::string_view Version();

// The commit it was built from, or "unknown". A release build names it to this one file, so that
// nothing else is compiled again for a new commit:
//   bazel build --per_file_copt=common/base/build_info.cc@-DKVD_COMMIT=$(git rev-parse HEAD) ...
std::string_view Commit();

}  // namespace kvd
