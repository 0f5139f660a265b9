#include "client/cli/change_watch.h"

#include <set>
#include <utility>

#include "common/base/status_macros.h"

namespace kvd::cli {

absl::StatusOr<std::vector<Change>> ChangeWatch::Look(KeyValueStore& store) {
  std::vector<Change> changes;
  KVD_RETURN_IF_ERROR(by_prefix_ ? LookAtPrefix(store, changes)
                                 : LookAtKeys(store, keys_, changes));
  Remember(changes);
  if (!std::exchange(looked_, true)) changes.clear();
  return changes;
}

// Versions of a key only grow; a scan may come across an item and then the one that it replaced.
bool ChangeWatch::IsNews(std::string_view key, uint64_t version) const {
  const auto known = versions_.find(key);
  return known == versions_.end() || version > known->second;
}

absl::Status ChangeWatch::LookAtKeys(KeyValueStore& store, const std::vector<std::string>& keys,
                                     std::vector<Change>& changes) {
  std::vector<Got> items = store.MultiGet(keys);
  for (size_t i = 0; i < items.size(); ++i) {
    Got& item = items[i];
    if (absl::IsNotFound(item.status)) {
      if (versions_.contains(keys[i])) changes.push_back({true, keys[i], "", {}});
      continue;
    }
    KVD_RETURN_IF_ERROR(item.status);
    if (IsNews(keys[i], item.info.version)) {
      changes.push_back({false, keys[i], std::move(item.value), item.info});
    }
  }
  return absl::OkStatus();
}

absl::Status ChangeWatch::LookAtPrefix(KeyValueStore& store, std::vector<Change>& changes) {
  std::set<std::string, std::less<>> missing;
  for (const auto& [key, version] : versions_) missing.insert(key);
  std::map<std::string, Change> news;
  const auto visit = [&](std::string_view key, std::string_view value, const ItemInfo& info) {
    if (const auto known = missing.find(key); known != missing.end()) missing.erase(known);
    if (!IsNews(key, info.version)) return true;
    Change& change = news[std::string(key)];
    if (change.key.empty() || change.info.version < info.version) {
      change = {false, std::string(key), std::string(value), info};
    }
    return true;
  };
  KVD_RETURN_IF_ERROR(store.Scan(visit, {.prefix = prefix_}).status());
  for (auto& [key, change] : news) changes.push_back(std::move(change));
  // A scan may miss an item that is written meanwhile: whether it is gone, a GET tells.
  if (missing.empty()) return absl::OkStatus();
  return LookAtKeys(store, {missing.begin(), missing.end()}, changes);
}

void ChangeWatch::Remember(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (change.gone) {
      versions_.erase(change.key);
    } else {
      versions_[change.key] = change.info.version;
    }
  }
}

}  // namespace kvd::cli
