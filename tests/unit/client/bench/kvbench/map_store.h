// A store in this process that does what a test tells it to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/bench/kvbench/store.h"

namespace kvd::bench {

struct MapItems {
  std::mutex mutex;
  std::map<std::string, std::pair<std::string, uint64_t>, std::less<>> items;  // value and version
  uint64_t version = 0;
  // Looks at, or spoils, what a GET is about to return.
  std::function<absl::Status(std::string_view key, std::string& value)> on_get;
  std::function<absl::Status()> on_put;
};

class MapStore : public Store {
 public:
  explicit MapStore(MapItems& items) : map_(items) {}

  absl::Status Get(std::string_view key, std::string& value, uint64_t& version) override {
    const std::lock_guard lock(map_.mutex);
    const auto found = map_.items.find(key);
    if (found == map_.items.end()) return absl::NotFoundError("no such key");
    value = found->second.first;
    version = found->second.second;
    return map_.on_get ? map_.on_get(key, value) : absl::OkStatus();
  }

  absl::Status Put(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(map_.mutex);
    if (map_.on_put) {
      if (absl::Status status = map_.on_put(); !status.ok()) return status;
    }
    map_.items[std::string(key)] = {std::string(value), ++map_.version};
    return absl::OkStatus();
  }

  absl::Status PutIfVersion(std::string_view key, std::string_view value,
                            uint64_t version) override {
    {
      const std::lock_guard lock(map_.mutex);
      const auto found = map_.items.find(key);
      if (found == map_.items.end() || found->second.second != version)
        return absl::AbortedError("changed");
    }
    return Put(key, value);
  }

  absl::Status MultiGet(std::span<const std::string_view> keys,
                        std::span<GetResult> results) override {
    for (size_t i = 0; i < keys.size(); ++i) {
      results[i].status = Get(keys[i], results[i].value, results[i].info.version);
    }
    return absl::OkStatus();
  }

  absl::Status MultiPut(std::span<const PutRequest> puts) override {
    for (const PutRequest& put : puts) {
      if (absl::Status status = Put(put.key, put.value); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  MapItems& map_;
};

inline StoreMaker MapStores(MapItems& items) {
  return [&items](size_t) -> absl::StatusOr<std::unique_ptr<Store>> {
    return std::make_unique<MapStore>(items);
  };
}

}  // namespace kvd::bench
