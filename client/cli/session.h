// The server that a run of kvcli talks to: connected when the first command needs it, and kept for
// the commands after it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/store.h"

namespace kvd::cli {

class Session {
 public:
  explicit Session(Connector connector) : connector_(std::move(connector)) {}

  // The store at `target`, connecting unless it is the one already connected to in the same way.
  // One that was connected to for administration serves nothing else: few of them are kept. Errors:
  // the connector's; the next call tries again.
  absl::StatusOr<KeyValueStore*> Store(std::string_view target, const ConnectOptions& options);

  // Gives up the store if it was connected to for administration. For whenever a command has ended:
  // a prompt that waits for its next line must not keep one of the few.
  void EndAdministration();

  // What the store at `target` called itself when it was last connected to; empty if it could not
  // be, or was never tried.
  std::string NameOf(std::string_view target) const;

 private:
  Connector connector_;
  std::string target_;
  RdmaChoice rdma_;  // by which store_ was connected, like the next
  KeyChoice key_;
  bool for_administration_ = false;
  uint32_t location_cache_entries_ = 0;
  std::unique_ptr<KeyValueStore> store_;
  std::map<std::string, std::string, std::less<>> names_;  // by target
};

}  // namespace kvd::cli
