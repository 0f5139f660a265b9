#include "client/cli/client_store.h"

#include <optional>
#include <string>
#include <utility>

#include "client/kv_client.h"
#include "common/base/status_macros.h"

namespace kvd::cli {
namespace {

ItemInfo FromLibrary(const kvd::ItemInfo& info) {
  return {info.version, info.user_flags, info.expiry_unix_us};
}

class ClientStore : public KeyValueStore {
 public:
  explicit ClientStore(std::unique_ptr<Client> client) : client_(std::move(client)) {}

  void SetDeadline(std::optional<std::chrono::nanoseconds> deadline) override {
    options_.deadline = deadline.value_or(std::chrono::nanoseconds(0));
  }

  absl::Status Get(std::string_view key, std::string& value, ItemInfo& info) override {
    kvd::ItemInfo library_info;
    KVD_RETURN_IF_ERROR(client_->Get(key, value, &library_info, options_));
    info = FromLibrary(library_info);
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value) override {
    KVD_ASSIGN_OR_RETURN(const PutResult result, client_->Put(key, value, options_));
    return result.version;
  }

  absl::Status Delete(std::string_view key) override { return client_->Delete(key, options_); }

  absl::StatusOr<bool> Exists(std::string_view key) override {
    return client_->Exists(key, options_);
  }

  absl::StatusOr<std::chrono::nanoseconds> Ping() override { return client_->Ping(options_); }

  absl::StatusOr<Statistics> Stats() override { return client_->Stats(options_); }

  absl::Status Scan(const Visitor& visit) override {
    return client_->Scan(
        [&visit](std::string_view key, std::string_view value, const kvd::ItemInfo& info) {
          return visit(key, value, FromLibrary(info));
        },
        options_);
  }

  uint64_t GetsByRequest() const override { return client_->counters().gets_by_request; }

  std::string target() const override { return client_->target(); }

 private:
  std::unique_ptr<Client> client_;
  OperationOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<KeyValueStore>> ConnectClientStore(
    std::string_view target, std::chrono::nanoseconds deadline) {
  ClientOptions options;
  options.deadline = deadline;
  options.name = "kvcli";
  KVD_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(target, options));
  return std::make_unique<ClientStore>(std::move(client));
}

}  // namespace kvd::cli
