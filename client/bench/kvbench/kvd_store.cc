#include "client/bench/kvbench/kvd_store.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

class KvdStore : public Store {
 public:
  KvdStore(std::unique_ptr<Client> client, size_t in_flight)
      : client_(std::move(client)), completions_(in_flight) {}

  absl::Status Get(std::string_view key, std::string& value, uint64_t& version) override {
    const absl::Status status = client_->Get(key, value, &info_);
    version = info_.version;
    return status;
  }

  absl::Status Put(std::string_view key, std::string_view value) override {
    return client_->Put(key, value).status();
  }

  absl::Status PutIfVersion(std::string_view key, std::string_view value,
                            uint64_t version) override {
    return client_->Put(key, value, Versioned(version)).status();
  }

  absl::Status MultiGet(std::span<const std::string_view> keys,
                        std::span<GetResult> results) override {
    return client_->MultiGet(keys, results);
  }

  absl::Status MultiPut(std::span<const PutRequest> puts) override {
    for (const auto& result : client_->MultiPut(puts)) KVD_RETURN_IF_ERROR(result.status());
    return absl::OkStatus();
  }

  bool CanStart() const override { return true; }

  void StartGet(std::string_view key, std::span<char> buffer, uint64_t tag) override {
    client_->StartGetInto(key, buffer, Async{.tag = tag, .done = nullptr});
  }

  void StartPut(std::string_view key, std::string_view value, uint64_t version,
                uint64_t tag) override {
    client_->StartPut(key, value, Async{.tag = tag, .done = nullptr},
                      version == 0 ? WriteOptions{} : Versioned(version));
  }

  size_t Wait(std::span<Ended> ended, std::chrono::nanoseconds timeout) override {
    const std::span<Completion> room =
        std::span(completions_).first(std::min(ended.size(), completions_.size()));
    const size_t count = timeout.count() == 0 ? client_->Poll(room) : client_->Wait(room, timeout);
    for (size_t i = 0; i < count; ++i) {
      ended[i] = {room[i].tag, room[i].status, room[i].length, room[i].info.version};
    }
    return count;
  }

  ClientCounters counters() const override { return client_->counters(); }

  absl::StatusOr<Statistics> Stats() override { return client_->Stats(); }

  int64_t ServerCpuUs(const Statistics& statistics) const override {
    int64_t user_us = 0;
    int64_t system_us = 0;
    if (!absl::SimpleAtoi(StatisticOf(statistics, "cpu_user_us"), &user_us) ||
        !absl::SimpleAtoi(StatisticOf(statistics, "cpu_system_us"), &system_us)) {
      return -1;
    }
    return user_us + system_us;
  }

 private:
  static WriteOptions Versioned(uint64_t version) {
    WriteOptions options;
    options.condition = Condition::IfVersion(version);
    return options;
  }

  std::unique_ptr<Client> client_;
  std::vector<Completion> completions_;
  ItemInfo info_;
};

}  // namespace

StoreMaker KvdStores(std::string target, const ClientOptions& options, size_t in_flight) {
  return [target = std::move(target), options,
          in_flight](size_t index) -> absl::StatusOr<std::unique_ptr<Store>> {
    ClientOptions own = options;
    own.name = index == kControl ? "kvbench" : absl::StrCat("kvbench-", index);
    if (index == kControl) {
      own.location_cache_entries = 0;
      own.location_cache = nullptr;
    }
    KVD_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(target, own));
    return std::make_unique<KvdStore>(std::move(client), in_flight);
  };
}

std::string StatisticOf(const Store::Statistics& statistics, std::string_view name) {
  for (const auto& [known, value] : statistics) {
    if (known == name) return value;
  }
  return "";
}

}  // namespace kvd::bench
