// A store that is a map, and fails when it is told to.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/store.h"

namespace kvd::cli::test {

// What outlives a connection.
struct FakeServer {
  std::map<std::string, std::pair<std::string, ItemInfo>, std::less<>> items;
  uint64_t last_version = 0;
  KeyValueStore::Statistics statistics;
  std::vector<std::chrono::nanoseconds> round_trips = {std::chrono::microseconds(10)};

  absl::Status connect_error;             // of every connection while it is not OK
  std::vector<std::string> fail_targets;  // nobody is there, whatever connect_error says
  absl::Status operation_error;           // of every operation while it is not OK
  std::map<std::string, absl::Status, std::less<>> put_errors;  // by key
  int connections = 0;
  std::vector<std::string> targets;                  // as they were named
  std::vector<RdmaChoice> choices;                   // by which they were connected to
  std::optional<std::chrono::nanoseconds> deadline;  // as last set

  void Insert(std::string_view key, std::string_view value) {
    items[std::string(key)] = {std::string(value), ItemInfo{++last_version, 0, 0}};
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
    const auto found = server_.items.find(key);
    if (found == server_.items.end()) return absl::NotFoundError("no such key");
    std::tie(value, info) = found->second;
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    if (key.empty() || key.size() > 4096) {
      return absl::InvalidArgumentError("keys have 1 to 4096 bytes");
    }
    if (const auto error = server_.put_errors.find(key); error != server_.put_errors.end()) {
      return error->second;
    }
    server_.Insert(key, value);
    return server_.last_version;
  }

  absl::Status Delete(std::string_view key) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    const auto found = server_.items.find(key);
    if (found == server_.items.end()) return absl::NotFoundError("no such key");
    server_.items.erase(found);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Exists(std::string_view key) override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.items.contains(key);
  }

  absl::StatusOr<std::chrono::nanoseconds> Ping() override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.round_trips[pings_++ % server_.round_trips.size()];
  }

  absl::StatusOr<Statistics> Stats() override {
    if (!server_.operation_error.ok()) return server_.operation_error;
    return server_.statistics;
  }

  absl::Status Scan(const Visitor& visit) override {
    for (const auto& [key, item] : server_.items) {
      if (!visit(key, item.first, item.second)) return absl::OkStatus();
    }
    return server_.operation_error;
  }

  std::string target() const override { return "shm:/run/fake.sock"; }

 private:
  FakeServer& server_;
  size_t pings_ = 0;
};

inline Connector ConnectorTo(FakeServer& server) {
  return
      [&server](std::string_view target,
                const ConnectOptions& options) -> absl::StatusOr<std::unique_ptr<KeyValueStore>> {
        server.targets.emplace_back(target);
        server.choices.push_back(options.rdma);
        if (!server.connect_error.ok()) return server.connect_error;
        for (const std::string& none : server.fail_targets) {
          if (target == none) return absl::UnavailableError("nobody there; wait");
        }
        ++server.connections;
        return std::make_unique<FakeStore>(server);
      };
}

}  // namespace kvd::cli::test
