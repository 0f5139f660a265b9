#include "client/cli/session.h"

#include "common/base/status_macros.h"

namespace kvd::cli {

absl::StatusOr<KeyValueStore*> Session::Store(std::string_view target,
                                              std::chrono::nanoseconds deadline) {
  if (store_ == nullptr || target != target_) {
    store_ = nullptr;
    KVD_ASSIGN_OR_RETURN(store_, connector_(target, deadline));
    target_ = target;
  }
  return store_.get();
}

}  // namespace kvd::cli
