// A store that is a map, and fails when it is told to.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/store.h"

namespace kvd::cli::test {

// What outlives a connection.
struct FakeServer {
  std::map<std::string, std::pair<std::string, ItemInfo>, std::less<>> items;
  uint64_t last_version = 0;
  KeyValueStore::Statistics statistics;
  std::vector<KeyValueStore::Statistics> sessions;  // that a kick ends, all of them
  std::vector<KeyValueStore::Statistics> slow_requests;
  std::string kicked;
  std::vector<std::chrono::nanoseconds> round_trips = {std::chrono::microseconds(10)};

  absl::Status connect_error;             // of every connection while it is not OK
  std::vector<std::string> fail_targets;  // nobody is there, whatever connect_error says
  absl::Status operation_error;           // of every operation while it is not OK
  std::map<std::string, absl::Status, std::less<>> put_errors;  // by key
  int64_t now_unix_us = 1'800'000'000'000'000;
  std::function<void()> on_exists = [] {};  // an operation that takes time moves a clock here
  std::function<void()> on_ping = [] {};
  std::set<std::string, std::less<>> unseen_by_scans;  // since they are written all the time
  std::vector<size_t> multi_gets;                      // how many keys each had
  std::vector<std::string> started;                    // keys, in order
  size_t started_at_once_max = 0;
  int connections = 0;
  std::vector<std::string> targets;                  // as they were named
  std::vector<KeyChoice> keys;                       // by which they were connected to
  std::vector<RdmaChoice> choices;                   // by which they were connected to
  std::optional<std::chrono::nanoseconds> deadline;  // as last set

  void Insert(std::string_view key, std::string_view value) {
    items[std::string(key)] = {std::string(value), ItemInfo{++last_version, 0, 0}};
  }
  bool IsThere(std::string_view key) const {
    const auto found = items.find(key);
    if (found == items.end()) return false;
    const int64_t expiry_unix_us = found->second.second.expiry_unix_us;
    return expiry_unix_us == 0 || expiry_unix_us > now_unix_us;
  }
};

class FakeStore : public KeyValueStore {
 public:
  explicit FakeStore(FakeServer& server) : server_(server) {}

  void SetDeadline(std::optional<std::chrono::nanoseconds> deadline) override {
    server_.deadline = deadline;
  }

  absl::Status Get(std::string_view key, std::string& value, ItemInfo& info) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    if (!server_.IsThere(key)) return absl::NotFoundError("no such key");
    std::tie(value, info) = server_.items.find(key)->second;
    return absl::OkStatus();
  }

  std::vector<Got> MultiGet(std::span<const std::string> keys) override {
    server_.multi_gets.push_back(keys.size());
    std::vector<Got> got(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      got[i].status = Get(keys[i], got[i].value, got[i].info);
    }
    return got;
  }

  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               const WriteOptions& options = {}) override {
    if (key.empty() || key.size() > 4096) {
      return absl::InvalidArgumentError("keys have 1 to 4096 bytes");
    }
    if (const auto error = server_.put_errors.find(key); error != server_.put_errors.end()) {
      return error->second;
    }
    return Change(key, options, false, [value](std::string_view) { return std::string(value); });
  }

  absl::StatusOr<uint64_t> Append(std::string_view key, std::string_view piece,
                                  const WriteOptions& options) override {
    return Change(key, options, true,
                  [piece](std::string_view old) { return std::string(old) + std::string(piece); });
  }

  absl::StatusOr<uint64_t> Prepend(std::string_view key, std::string_view piece,
                                   const WriteOptions& options) override {
    return Change(key, options, true,
                  [piece](std::string_view old) { return std::string(piece) + std::string(old); });
  }

  absl::StatusOr<Incremented> Increment(std::string_view key, int64_t delta,
                                        const WriteOptions& options) override {
    int64_t sum = 0;
    const absl::StatusOr<uint64_t> version =
        Change(key, options, true, [&](std::string_view old) -> absl::StatusOr<std::string> {
          int64_t number = 0;
          if (!old.empty() && !absl::SimpleAtoi(std::string(old), &number)) {
            return absl::InvalidArgumentError("the value is no number");
          }
          if (__builtin_add_overflow(number, delta, &sum)) {
            return absl::OutOfRangeError("the sum does not fit; the value is unchanged");
          }
          return std::to_string(sum);
        });
    if (!version.ok()) return version.status();
    return Incremented{sum, *version};
  }

  absl::StatusOr<uint64_t> Touch(std::string_view key, const WriteOptions& options) override {
    if (server_.operation_error.ok() && !server_.IsThere(key)) {
      return absl::NotFoundError("no such key");
    }
    return Change(key, options, false, [](std::string_view old) { return std::string(old); });
  }

  absl::Status GetAndTouch(std::string_view key, std::string& value, ItemInfo& info,
                           const WriteOptions& options) override {
    if (const auto touched = Touch(key, options); !touched.ok()) return touched.status();
    return Get(key, value, info);
  }

  absl::Status Delete(std::string_view key, const WriteOptions& options = {}) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    if (!server_.IsThere(key)) return absl::NotFoundError("no such key");
    if (absl::Status status = Check(key, options.condition); !status.ok()) return status;
    server_.items.erase(server_.items.find(key));
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Flush(std::string_view prefix) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return std::erase_if(server_.items,
                         [prefix](const auto& item) { return item.first.starts_with(prefix); });
  }

  // Takes effect when it is waited for, in the reverse order: whoever starts several of one key
  // finds out.
  void StartPut(std::string_view key, std::string_view value, const WriteOptions& options,
                Done done) override {
    server_.started.emplace_back(key);
    started_.push_back({std::string(key), std::string(value), options, std::move(done)});
    server_.started_at_once_max = std::max(server_.started_at_once_max, started_.size());
  }

  void WaitForStarted() override {
    for (auto put = started_.rbegin(); put != started_.rend(); ++put) {
      put->done(Put(put->key, put->value, put->options).status());
    }
    started_.clear();
  }

  absl::StatusOr<bool> Exists(std::string_view key) override {
    server_.on_exists();
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.IsThere(key);
  }

  absl::StatusOr<std::chrono::nanoseconds> Ping() override {
    server_.on_ping();
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.round_trips[pings_++ % server_.round_trips.size()];
  }

  absl::StatusOr<Statistics> Stats() override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.statistics;
  }

  absl::StatusOr<std::vector<Statistics>> Sessions() override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.sessions;
  }

  absl::StatusOr<std::vector<Statistics>> SlowRequests() override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.slow_requests;
  }

  absl::StatusOr<uint64_t> Kick(std::string_view who) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    server_.kicked = who;
    return server_.sessions.size();
  }

  // Buckets of two items; a cursor is the key that comes next.
  absl::StatusOr<std::string> Scan(const Visitor& visit, const ScanOptions& options) override {
    if (options.cursor == "old") return absl::FailedPreconditionError("of an earlier run of kvd");
    if (options.cursor == "bad") return absl::InvalidArgumentError("no cursor");
    uint64_t visited = 0;
    uint64_t met = 0;
    for (auto item = server_.items.lower_bound(options.cursor); item != server_.items.end();
         ++item, ++met) {
      if (options.count != 0 && visited >= options.count && met % 2 == 0) return item->first;
      if (!item->first.starts_with(options.prefix)) continue;
      if (server_.unseen_by_scans.contains(item->first)) continue;
      ++visited;
      if (!visit(item->first, item->second.first, item->second.second)) return item->first;
    }
    if (!server_.operation_error.ok()) return server_.operation_error;
    return "";
  }

  int64_t ServerUnixUs() override { return server_.now_unix_us; }

  std::string target() const override { return "shm:/run/fake.sock"; }

 private:
  absl::Status Check(std::string_view key, const Condition& condition) const {
    const bool there = server_.IsThere(key);
    const uint64_t version = there ? server_.items.find(key)->second.second.version : 0;
    switch (condition.kind) {
      case Condition::Kind::kNone:
        return absl::OkStatus();
      case Condition::Kind::kIfAbsent:
        if (!there) return absl::OkStatus();
        break;
      case Condition::Kind::kIfPresent:
        return there ? absl::OkStatus() : absl::NotFoundError("no such key");
      case Condition::Kind::kIfVersion:
        if (!there) return absl::NotFoundError("no such key");
        if (version == condition.version) return absl::OkStatus();
        break;
    }
    return absl::AbortedError(absl::StrCat("the item has version ", version));
  }

  using NewValue = std::function<absl::StatusOr<std::string>(std::string_view old)>;
  absl::StatusOr<uint64_t> Change(std::string_view key, const WriteOptions& options,
                                  bool keeps_expiry, const NewValue& new_value) {
    if (!server_.operation_error.ok()) return server_.operation_error;
    if (absl::Status status = Check(key, options.condition); !status.ok()) return status;
    ItemInfo info;
    std::string old;
    if (server_.IsThere(key)) std::tie(old, info) = server_.items.find(key)->second;
    const absl::StatusOr<std::string> value = new_value(old);
    if (!value.ok()) return value.status();
    if (!keeps_expiry) info.expiry_unix_us = 0;
    if (options.ttl.count() != 0) info.expiry_unix_us = server_.now_unix_us + options.ttl.count();
    if (options.expiry_unix_us != 0) info.expiry_unix_us = options.expiry_unix_us;
    info.user_flags = options.user_flags;
    server_.Insert(key, *value);
    info.version = server_.last_version;
    server_.items.find(key)->second.second = info;
    return info.version;
  }

  struct StartedPut {
    std::string key;
    std::string value;
    WriteOptions options;
    Done done;
  };

  FakeServer& server_;
  std::vector<StartedPut> started_;
  size_t pings_ = 0;
};

inline Connector ConnectorTo(FakeServer& server) {
  return
      [&server](std::string_view target,
                const ConnectOptions& options) -> absl::StatusOr<std::unique_ptr<KeyValueStore>> {
        server.targets.emplace_back(target);
        server.choices.push_back(options.rdma);
        server.keys.push_back(options.key);
        if (!server.connect_error.ok()) return server.connect_error;
        for (const std::string& none : server.fail_targets) {
          if (target == none) return absl::UnavailableError("nobody there; wait");
        }
        ++server.connections;
        return std::make_unique<FakeStore>(server);
      };
}

}  // namespace kvd::cli::test
