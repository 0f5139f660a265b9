#include "client/bench/compare/map_store.h"

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "common/base/string_view.h"

namespace kvd::bench {
namespace {

struct Map {
  std::shared_mutex mutex;
  absl::flat_hash_map<std::string, std::string> items;
};

class MapStore : public Store {
 public:
  MapStore(std::shared_ptr<Map> map, bool locks) : map_(std::move(map)), locks_(locks) {}

  absl::Status Get(std::string_view key, std::string& value, uint64_t& version) override {
    version = 0;
    std::shared_lock<std::shared_mutex> lock(map_->mutex, std::defer_lock);
    if (locks_) lock.lock();
    const auto found = map_->items.find(ToAbsl(key));
    if (found == map_->items.end()) return absl::NotFoundError("not found");
    value.assign(found->second);
    return absl::OkStatus();
  }

  absl::Status Put(std::string_view key, std::string_view value) override {
    std::unique_lock<std::shared_mutex> lock(map_->mutex, std::defer_lock);
    if (locks_) lock.lock();
    map_->items[ToAbsl(key)].assign(value);
    return absl::OkStatus();
  }

  absl::Status MultiGet(std::span<const std::string_view> keys,
                        std::span<GetResult> results) override {
    uint64_t version = 0;
    for (size_t i = 0; i < keys.size(); ++i)
      results[i].status = Get(keys[i], results[i].value, version);
    return absl::OkStatus();
  }

  absl::Status MultiPut(std::span<const PutRequest> puts) override {
    absl::Status status;
    for (const PutRequest& put : puts) status.Update(Put(put.key, put.value));
    return status;
  }

 private:
  std::shared_ptr<Map> map_;
  const bool locks_;
};

}  // namespace

StoreMaker MapStores(size_t clients) {
  auto map = std::make_shared<Map>();
  return [map, clients](size_t) -> absl::StatusOr<std::unique_ptr<Store>> {
    return std::make_unique<MapStore>(map, clients > 1);
  };
}

}  // namespace kvd::bench
