#include "client/bench/compare/lmdb_store.h"

#include <lmdb.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

constexpr size_t kMapBytes = size_t{16} << 30;  // of addresses
constexpr unsigned kReadersMax = 1100;

absl::Status StatusOf(int code, const char* what) {
  if (code == MDB_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", mdb_strerror(code));
  if (code == MDB_NOTFOUND) return absl::NotFoundError(text);
  return code == MDB_MAP_FULL ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

MDB_val ValueOf(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }

struct Environment {
  MDB_env* env = nullptr;
  MDB_dbi items = 0;
  ~Environment() {
    if (env != nullptr) mdb_env_close(env);
  }
};

class LmdbStore : public Store {
 public:
  explicit LmdbStore(std::shared_ptr<Environment> environment)
      : environment_(std::move(environment)) {}
  ~LmdbStore() override {
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }

  absl::Status Get(std::string_view key, std::string& value, uint64_t& version) override {
    version = 0;
    KVD_RETURN_IF_ERROR(BeginReading());
    const absl::Status status = GetWithin(key, value);
    mdb_txn_reset(reader_);
    return status;
  }

  absl::Status Put(std::string_view key, std::string_view value) override {
    const PutRequest put = {key, value};
    return MultiPut({&put, 1});
  }

  absl::Status MultiGet(std::span<const std::string_view> keys,
                        std::span<GetResult> results) override {
    KVD_RETURN_IF_ERROR(BeginReading());
    for (size_t i = 0; i < keys.size(); ++i)
      results[i].status = GetWithin(keys[i], results[i].value);
    mdb_txn_reset(reader_);
    return absl::OkStatus();
  }

  // In one transaction.
  absl::Status MultiPut(std::span<const PutRequest> puts) override {
    MDB_txn* writer = nullptr;
    KVD_RETURN_IF_ERROR(
        StatusOf(mdb_txn_begin(environment_->env, nullptr, 0, &writer), "begin writing"));
    for (const PutRequest& put : puts) {
      MDB_val key = ValueOf(put.key);
      MDB_val value = ValueOf(put.value);
      if (const int code = mdb_put(writer, environment_->items, &key, &value, 0);
          code != MDB_SUCCESS) {
        mdb_txn_abort(writer);
        return StatusOf(code, "put");
      }
    }
    return StatusOf(mdb_txn_commit(writer), "commit");
  }

 private:
  // A transaction that is used again costs less than a new one.
  absl::Status BeginReading() {
    if (reader_ != nullptr) return StatusOf(mdb_txn_renew(reader_), "renew");
    return StatusOf(mdb_txn_begin(environment_->env, nullptr, MDB_RDONLY, &reader_),
                    "begin reading");
  }

  absl::Status GetWithin(std::string_view key, std::string& value) {
    MDB_val name = ValueOf(key);
    MDB_val found{};
    if (const int code = mdb_get(reader_, environment_->items, &name, &found);
        code != MDB_SUCCESS) {
      return StatusOf(code, "get");
    }
    value.assign(static_cast<const char*>(found.mv_data), found.mv_size);
    return absl::OkStatus();
  }

  std::shared_ptr<Environment> environment_;
  MDB_txn* reader_ = nullptr;
};

}  // namespace

absl::StatusOr<StoreMaker> LmdbStores(const std::string& directory) {
  auto environment = std::make_shared<Environment>();
  KVD_RETURN_IF_ERROR(StatusOf(mdb_env_create(&environment->env), "create"));
  mdb_env_set_mapsize(environment->env, kMapBytes);
  mdb_env_set_maxreaders(environment->env, kReadersMax);
  // A reader per transaction, not per thread: the leader opens it, the clients read.
  constexpr unsigned kFlags = MDB_NOSYNC | MDB_WRITEMAP | MDB_MAPASYNC | MDB_NOTLS | MDB_NORDAHEAD;
  KVD_RETURN_IF_ERROR(
      StatusOf(mdb_env_open(environment->env, directory.c_str(), kFlags, 0600), directory.c_str()));
  MDB_txn* first = nullptr;
  KVD_RETURN_IF_ERROR(StatusOf(mdb_txn_begin(environment->env, nullptr, 0, &first), "begin"));
  KVD_RETURN_IF_ERROR(
      StatusOf(mdb_dbi_open(first, nullptr, MDB_CREATE, &environment->items), "open"));
  KVD_RETURN_IF_ERROR(StatusOf(mdb_txn_commit(first), "commit"));
  return [environment](size_t) -> absl::StatusOr<std::unique_ptr<Store>> {
    return std::make_unique<LmdbStore>(environment);
  };
}

}  // namespace kvd::bench
