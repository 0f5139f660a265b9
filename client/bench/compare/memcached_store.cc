#include "client/bench/compare/memcached_store.h"

#include <libmemcached/memcached.h>

#include <memory>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "client/bench/compare/cpu_seconds.h"
#include "client/bench/compare/place.h"

namespace kvd::bench {
namespace {

class MemcachedStore : public Store {
 public:
  explicit MemcachedStore(memcached_st* memcached) : memcached_(memcached) {}
  ~MemcachedStore() override { memcached_free(memcached_); }

  absl::Status Get(std::string_view key, std::string& value, uint64_t& version) override {
    version = 0;
    const char* name = key.data();
    const size_t size = key.size();
    // memcached_get would allocate a value each time; a fetched result is used again.
    memcached_return_t code = memcached_mget(memcached_, &name, &size, 1);
    if (memcached_failed(code)) return Failure("get", code);
    if (memcached_fetch_result(memcached_, &result_, &code) == nullptr) {
      return code == MEMCACHED_NOTFOUND || code == MEMCACHED_END ? absl::NotFoundError("not found")
                                                                 : Failure("get", code);
    }
    value.assign(memcached_result_value(&result_), memcached_result_length(&result_));
    while (memcached_fetch_result(memcached_, &result_, &code) != nullptr) {
    }
    return absl::OkStatus();
  }

  absl::Status Put(std::string_view key, std::string_view value) override {
    const memcached_return_t code =
        memcached_set(memcached_, key.data(), key.size(), value.data(), value.size(), 0, 0);
    return memcached_success(code) ? absl::OkStatus() : Failure("set", code);
  }

  absl::Status MultiGet(std::span<const std::string_view> keys,
                        std::span<GetResult> results) override {
    names_.clear();
    sizes_.clear();
    places_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      results[i].status = absl::NotFoundError("not found");
      names_.push_back(keys[i].data());
      sizes_.push_back(keys[i].size());
      places_.emplace(keys[i], i);
    }
    memcached_return_t code =
        memcached_mget(memcached_, names_.data(), sizes_.data(), names_.size());
    if (memcached_failed(code)) return Failure("get", code);
    while (memcached_fetch_result(memcached_, &result_, &code) != nullptr) {
      const std::string_view key(memcached_result_key_value(&result_),
                                 memcached_result_key_length(&result_));
      const auto [first, last] = places_.equal_range(key);
      for (auto place = first; place != last; ++place) {
        results[place->second].value.assign(memcached_result_value(&result_),
                                            memcached_result_length(&result_));
        results[place->second].status = absl::OkStatus();
      }
    }
    return code == MEMCACHED_END || code == MEMCACHED_NOTFOUND ? absl::OkStatus()
                                                               : Failure("get", code);
  }

  absl::Status MultiPut(std::span<const PutRequest> puts) override {
    memcached_behavior_set(memcached_, MEMCACHED_BEHAVIOR_NOREPLY, 1);
    memcached_behavior_set(memcached_, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
    absl::Status status;
    for (size_t i = 0; i + 1 < puts.size() && status.ok(); ++i) {
      const memcached_return_t code =
          memcached_set(memcached_, puts[i].key.data(), puts[i].key.size(), puts[i].value.data(),
                        puts[i].value.size(), 0, 0);
      if (memcached_failed(code)) status = Failure("set", code);
    }
    memcached_flush_buffers(memcached_);
    memcached_behavior_set(memcached_, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 0);
    memcached_behavior_set(memcached_, MEMCACHED_BEHAVIOR_NOREPLY, 0);
    // The last one's answer says that the others, which have none, are done.
    return status.ok() && !puts.empty() ? Put(puts.back().key, puts.back().value) : status;
  }

  // Not by memcached_stat, which knows few of the names, and prints microseconds without leading
  // zeroes.
  absl::StatusOr<Statistics> Stats() override {
    Statistics statistics;
    const auto take = [](const memcached_instance_st*, const char* name, size_t name_size,
                         const char* value, size_t value_size, void* into) {
      static_cast<Statistics*>(into)->emplace_back(std::string(name, name_size),
                                                   std::string(value, value_size));
      return MEMCACHED_SUCCESS;
    };
    const memcached_return_t code = memcached_stat_execute(memcached_, nullptr, take, &statistics);
    return memcached_success(code) ? absl::StatusOr<Statistics>(std::move(statistics))
                                   : Failure("stats", code);
  }

  int64_t ServerCpuUs(const Statistics& statistics) const override {
    return CpuUsOf(statistics, "rusage_user", "rusage_system");
  }

 private:
  absl::Status Failure(const char* what, memcached_return_t code) {
    const std::string text =
        absl::StrCat("memcached ", what, ": ", memcached_strerror(memcached_, code));
    return code == MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE ? absl::ResourceExhaustedError(text)
                                                              : absl::UnavailableError(text);
  }

  memcached_st* const memcached_;
  memcached_result_st result_storage_{};
  memcached_result_st& result_ = *memcached_result_create(memcached_, &result_storage_);
  std::vector<const char*> names_;
  std::vector<size_t> sizes_;
  std::unordered_multimap<std::string_view, size_t> places_;
};

}  // namespace

absl::StatusOr<StoreMaker> MemcachedStores(const std::string& place) {
  const absl::StatusOr<Place> parsed = ParsePlace(place);
  if (!parsed.ok()) return parsed.status();
  return [place = *parsed](size_t) -> absl::StatusOr<std::unique_ptr<Store>> {
    memcached_st* const memcached = memcached_create(nullptr);
    if (memcached == nullptr) return absl::ResourceExhaustedError("memcached_create");
    auto store = std::make_unique<MemcachedStore>(memcached);
    memcached_behavior_set(memcached, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    const memcached_return_t code =
        place.path.empty() ? memcached_server_add(memcached, place.host.c_str(),
                                                  static_cast<in_port_t>(place.port))
                           : memcached_server_add_unix_socket(memcached, place.path.c_str());
    if (memcached_failed(code)) return absl::UnavailableError(memcached_strerror(memcached, code));
    if (const memcached_return_t there = memcached_version(memcached); memcached_failed(there)) {
      return absl::UnavailableError(absl::StrCat("no memcached at ",
                                                 place.path.empty() ? place.host : place.path, ": ",
                                                 memcached_strerror(memcached, there)));
    }
    return store;
  };
}

}  // namespace kvd::bench
