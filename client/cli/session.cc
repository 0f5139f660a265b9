#include "client/cli/session.h"

#include "common/base/status_macros.h"

namespace kvd::cli {

absl::StatusOr<KeyValueStore*> Session::Store(std::string_view target,
                                              const ConnectOptions& options) {
  const bool lent = for_administration_ && !options.for_administration;
  if (store_ == nullptr || target != target_ || options.rdma != rdma_ || options.key != key_ ||
      options.location_cache_entries != location_cache_entries_ || lent) {
    store_ = nullptr;
    std::string& name = names_[std::string(target)];
    name.clear();
    KVD_ASSIGN_OR_RETURN(store_, connector_(target, options));
    target_ = target;
    rdma_ = options.rdma;
    key_ = options.key;
    for_administration_ = options.for_administration;
    location_cache_entries_ = options.location_cache_entries;
    name = store_->target();
  }
  return store_.get();
}

void Session::EndAdministration() {
  if (for_administration_) store_ = nullptr;
}

std::string Session::NameOf(std::string_view target) const {
  const auto found = names_.find(target);
  return found == names_.end() ? "" : found->second;
}

}  // namespace kvd::cli
