// Many keys at once: one wait for all of them instead of one for each, and a status for each.
//
//   bazel run //client/examples:batch -- shm:/run/kvd/kvd.sock
#include <chrono>
#include <iostream>
#include <string>
#include <vector>

#include "client/kv_client.h"

int main(int argc, char** argv) {
  const auto connected = kvd::Client::Connect(argc > 1 ? argv[1] : "");
  if (!connected.ok()) {
    std::cerr << "connect: " << connected.status().message() << "\n";
    return 1;
  }
  kvd::Client& client = **connected;

  // Keys and values are views: what they point to lives until the call returns.
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("user:" + std::to_string(i));
  std::vector<kvd::PutRequest> puts;
  for (const std::string& name : names) puts.push_back({name, "online"});

  kvd::WriteOptions options;
  options.ttl = std::chrono::minutes(5);  // of each
  size_t stored = 0;
  for (const auto& put : client.MultiPut(puts, options)) {
    if (put.ok()) {
      ++stored;
    } else {
      std::cerr << "put: " << put.status().message() << "\n";
    }
  }

  const std::vector<std::string_view> keys = {"user:7", "user:nobody", "user:99"};
  std::vector<kvd::GetResult> results(keys.size());
  const absl::Status got = client.MultiGet(keys, results);  // not OK: the two sizes differ
  if (!got.ok()) return 1;
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool there = results[i].status.ok();
    std::cout << keys[i] << ": " << (there ? results[i].value : results[i].status.message())
              << "\n";
  }

  size_t deleted = 0;
  const std::vector<std::string_view> all(names.begin(), names.end());
  for (const absl::Status& status : client.MultiDelete(all)) deleted += status.ok() ? 1 : 0;
  std::cout << stored << " stored, " << deleted << " deleted\n";
  return 0;
}
