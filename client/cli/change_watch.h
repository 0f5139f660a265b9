// What changes in a store, found by looking at it again and again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/store.h"

namespace kvd::cli {

struct Change {
  bool gone = false;  // deleted, expired or evicted
  std::string key;
  std::string value;  // unless gone
  ItemInfo info;
};

// Reads one-sidedly, so the server does nothing for it. Of several changes of a key between two
// looks only what is there in the end is seen; one that is deleted and written again was changed.
// Remembers a version for each key that is there.
class ChangeWatch {
 public:
  // These keys, or every one that begins with `prefix`.
  explicit ChangeWatch(std::vector<std::string> keys) : keys_(std::move(keys)) {}
  explicit ChangeWatch(std::string prefix) : prefix_(std::move(prefix)), by_prefix_(true) {}

  // What has changed since the last look, nothing the first time. An error is the store's; nothing
  // is lost by it: the next look tells of all changes since the last that went well.
  absl::StatusOr<std::vector<Change>> Look(KeyValueStore& store);

 private:
  absl::Status LookAtKeys(KeyValueStore& store, const std::vector<std::string>& keys,
                          std::vector<Change>& changes);
  absl::Status LookAtPrefix(KeyValueStore& store, std::vector<Change>& changes);
  bool IsNews(std::string_view key, uint64_t version) const;
  void Remember(const std::vector<Change>& changes);

  const std::vector<std::string> keys_;
  const std::string prefix_;
  const bool by_prefix_ = false;
  bool looked_ = false;
  std::map<std::string, uint64_t, std::less<>> versions_;
};

}  // namespace kvd::cli
