#include "common/base/build_info.h"

namespace kvd {

// Holds where nothing stronger is linked: only programs have the stamp, so that a new commit does
// not make every library and test anew.
__attribute__((weak)) const char* StampedCommit() { return "unknown"; }

std::string_view Version() { return "0.1.0"; }

std::string_view Commit() { return StampedCommit(); }

}  // namespace kvd
