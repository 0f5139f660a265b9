#include "client/cli/client_store.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/plain_reads.h"
#include "client/internal/target.h"
#include "client/kv_client.h"
#include "common/admission/access_rules.h"
#include "common/base/status_macros.h"

namespace kvd::cli {
namespace {

ItemInfo FromLibrary(const kvd::ItemInfo& info) {
  return {info.version, info.user_flags, info.expiry_unix_us};
}

kvd::Condition ToLibrary(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::kNone:
      break;
    case Condition::Kind::kIfAbsent:
      return kvd::Condition::IfAbsent();
    case Condition::Kind::kIfPresent:
      return kvd::Condition::IfPresent();
    case Condition::Kind::kIfVersion:
      return kvd::Condition::IfVersion(condition.version);
  }
  return {};
}

absl::StatusOr<uint64_t> VersionOf(const absl::StatusOr<WriteResult>& result) {
  KVD_RETURN_IF_ERROR(result.status());
  return result->version;
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

  std::vector<Got> MultiGet(std::span<const std::string> keys) override {
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<GetResult> results(keys.size());
    const absl::Status status = client_->MultiGet(views, results, options_);
    std::vector<Got> got(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      got[i] = {status.ok() ? results[i].status : status, std::move(results[i].value),
                FromLibrary(results[i].info)};
    }
    return got;
  }

  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const WriteOptions& options) override {
    return VersionOf(client_->Put(key, value, ToLibrary(options)));
  }

  absl::StatusOr<uint64_t> Append(std::string_view key, std::string_view piece,
                                  const WriteOptions& options) override {
    return VersionOf(client_->Append(key, piece, ToLibrary(options)));
  }

  absl::StatusOr<uint64_t> Prepend(std::string_view key, std::string_view piece,
                                   const WriteOptions& options) override {
    return VersionOf(client_->Prepend(key, piece, ToLibrary(options)));
  }

  absl::StatusOr<Incremented> Increment(std::string_view key, int64_t delta,
                                        const WriteOptions& options) override {
    KVD_ASSIGN_OR_RETURN(const IncrementResult result,
                         client_->Increment(key, delta, ToLibrary(options)));
    return Incremented{result.value, result.version};
  }

  absl::StatusOr<uint64_t> Touch(std::string_view key, const WriteOptions& options) override {
    return VersionOf(client_->Touch(key, ToLibrary(options)));
  }

  absl::Status GetAndTouch(std::string_view key, std::string& value, ItemInfo& info,
                           const WriteOptions& options) override {
    kvd::ItemInfo library_info;
    KVD_RETURN_IF_ERROR(client_->GetAndTouch(key, value, &library_info, ToLibrary(options)));
    info = FromLibrary(library_info);
    return absl::OkStatus();
  }

  absl::Status Delete(std::string_view key, const WriteOptions& options) override {
    return client_->Delete(key, ToLibrary(options));
  }

  absl::StatusOr<uint64_t> Flush(std::string_view prefix) override {
    return client_->Flush(prefix, options_);
  }

  void StartPut(std::string_view key, std::string_view value, const WriteOptions& options,
                Done done) override {
    Async async;
    async.done = [done = std::move(done)](Completion& completion) { done(completion.status); };
    client_->StartPut(key, value, std::move(async), ToLibrary(options));
  }

  void WaitForStarted() override { client_->Wait({}, std::chrono::milliseconds(100)); }

  absl::StatusOr<bool> Exists(std::string_view key) override {
    return client_->Exists(key, options_);
  }

  absl::StatusOr<std::chrono::nanoseconds> Ping() override { return client_->Ping(options_); }

  absl::StatusOr<Statistics> Stats() override { return client_->Stats(options_); }

  absl::StatusOr<std::vector<Statistics>> Sessions() override {
    return client_->Sessions(options_);
  }
  absl::StatusOr<std::vector<Statistics>> SlowRequests() override {
    return client_->SlowRequests(options_);
  }
  absl::StatusOr<uint64_t> Kick(std::string_view who) override {
    return client_->Kick(who, options_);
  }

  absl::StatusOr<std::string> Scan(const Visitor& visit, const ScanOptions& options) override {
    kvd::ScanOptions scan;
    scan.deadline = options_.deadline;
    scan.prefix = options.prefix;
    scan.cursor = options.cursor;
    scan.count = options.count;
    return client_->Scan(
        [&visit](std::string_view key, std::string_view value, const kvd::ItemInfo& info) {
          return visit(key, value, FromLibrary(info));
        },
        scan);
  }

  int64_t ServerUnixUs() override { return client_->ServerUnixUs(); }

  ReadCounters Reads() const override {
    const ClientCounters& counters = client_->counters();
    return {counters.reads,       counters.read_bytes,      counters.torn_reads,
            counters.moved_items, counters.gets_by_request, counters.location_hits};
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
  kvd::WriteOptions ToLibrary(const WriteOptions& options) const {
    kvd::WriteOptions library;
    library.deadline = options_.deadline;
    library.condition = cli::ToLibrary(options.condition);
    library.ttl = options.ttl;
    library.expiry_unix_us = options.expiry_unix_us;
    library.user_flags = options.user_flags;
    return library;
  }

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
  if (options.credits != 0) library.credits = options.credits;
  library.for_administration = options.for_administration;
  library.location_cache_entries = options.location_cache_entries;
  library.key_file = options.key.file;
  library.key_name = options.key.name;
  library.rdma_device = options.rdma.device;
  library.rdma_connect_by_tcp = options.rdma.connect_by_tcp;
  library.rdma_gid_index = options.rdma.gid_index;
  KVD_ASSIGN_OR_RETURN(const std::vector<Target> parsed, ParseTargets(target));
  const bool by_rdma = std::any_of(parsed.begin(), parsed.end(), [](const Target& one) {
    return one.kind == Target::Kind::kRdma;
  });
  if (by_rdma && options.rdma.gid_index >= 0 && !options.rdma.connect_by_tcp) {
    return absl::InvalidArgumentError(
        "--gid_index is for --connect=tcp; rdma_cm chooses the GID by the address");
  }
  if (!options.key.file.empty()) {
    // This side's own, whatever is wrong with it: no server has refused anything.
    const absl::Status key = LoadAccessKey(options.key.file, options.key.name).status();
    if (!key.ok()) return absl::InvalidArgumentError(key.message());
  }
  KVD_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(target, library));
  return std::make_unique<ClientStore>(std::move(client), options);
}

}  // namespace kvd::cli
