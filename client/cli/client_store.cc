#include "client/cli/client_store.h"

#include <optional>
#include <string>
#include <utility>

#include "client/cli/plain_reads.h"
#include "client/internal/target.h"
#include "client/kv_client.h"
#include "common/base/status_macros.h"

namespace kvd::cli {
namespace {

ItemInfo FromLibrary(const kvd::ItemInfo& info) {
  return {info.version, info.user_flags, info.expiry_unix_us};
}

class ClientStore : public KeyValueStore {
 public:
  ClientStore(std::unique_ptr<Client> client, ConnectOptions options)
      : client_(std::move(client)), connect_options_(std::move(options)) {}

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
    KVD_ASSIGN_OR_RETURN(const WriteResult result,
                         client_->Put(key, value, {.deadline = options_.deadline}));
    return result.version;
  }

  absl::Status Delete(std::string_view key) override {
    return client_->Delete(key, {.deadline = options_.deadline});
  }

  absl::StatusOr<bool> Exists(std::string_view key) override {
    return client_->Exists(key, options_);
  }

  absl::StatusOr<std::chrono::nanoseconds> Ping() override { return client_->Ping(options_); }

  absl::StatusOr<Statistics> Stats() override { return client_->Stats(options_); }

  absl::Status Scan(const Visitor& visit) override {
    ScanOptions scan;
    scan.deadline = options_.deadline;
    return client_->Scan(
        [&visit](std::string_view key, std::string_view value, const kvd::ItemInfo& info) {
          return visit(key, value, FromLibrary(info));
        },
        scan).status();
  }

  uint64_t GetsByRequest() const override { return client_->counters().gets_by_request; }

  // Over a connection of its own: the library shows nobody what it READs.
  absl::StatusOr<std::chrono::nanoseconds> PlainRead(uint64_t bytes) override {
    if (plain_reads_ == nullptr) {
      KVD_ASSIGN_OR_RETURN(plain_reads_, PlainReads::Connect(client_->target(), connect_options_));
    }
    return plain_reads_->Read(bytes);
  }

  std::string target() const override { return client_->target(); }

 private:
  std::unique_ptr<Client> client_;
  const ConnectOptions connect_options_;
  OperationOptions options_;
  std::unique_ptr<PlainReads> plain_reads_;  // once one was asked for
};

}  // namespace

absl::StatusOr<std::unique_ptr<KeyValueStore>> ConnectClientStore(std::string_view target,
                                                                  const ConnectOptions& options) {
  ClientOptions library;
  library.deadline = options.deadline;
  library.name = "kvcli";
  library.rdma_device = options.rdma.device;
  library.rdma_connect_by_tcp = options.rdma.connect_by_tcp;
  library.rdma_gid_index = options.rdma.gid_index;
  KVD_ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
  if (parsed.kind == Target::Kind::kRdma && options.rdma.gid_index >= 0 &&
      !options.rdma.connect_by_tcp) {
    return absl::InvalidArgumentError(
        "--gid_index is for --connect=tcp; rdma_cm chooses the GID by the address");
  }
  KVD_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(target, library));
  return std::make_unique<ClientStore>(std::move(client), options);
}

}  // namespace kvd::cli
