// Several threads, each with a client of its own, that remember together where items lie: what one
// of them has read, the others find with one exact read.
//
//   bazel run //client/examples:threads -- shm:/run/kvd/kvd.sock
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/kv_client.h"

namespace {

constexpr int kThreads = 4;
constexpr int kKeys = 1000;

std::string KeyOf(int i) { return "user:" + std::to_string(i); }

// Reads all keys; returns how many were found, and in `remembered` how many where they were known
// to lie.
int ReadAll(kvd::Client& client, uint64_t& remembered) {
  int found = 0;
  std::string value;
  for (int i = 0; i < kKeys; ++i) found += client.Get(KeyOf(i), value).ok() ? 1 : 0;
  remembered = client.counters().location_hits;
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string target = argc > 1 ? argv[1] : "";
  // Four entries a key, 16 bytes each. Without it each client would have to look for each key.
  const auto locations = kvd::MakeLocationCache(4 * kKeys);
  if (!locations.ok()) {
    std::cerr << "location cache: " << locations.status().message() << "\n";
    return 1;
  }
  kvd::ClientOptions options;
  options.location_cache = *locations;

  std::vector<std::unique_ptr<kvd::Client>> clients;
  for (int i = 0; i < kThreads; ++i) {
    auto client = kvd::Client::Connect(target, options);
    if (!client.ok()) {
      std::cerr << "connect: " << client.status().message() << "\n";
      return 1;
    }
    clients.push_back(*std::move(client));
  }
  // The answer to a write says where the item lies: remembered for all of them.
  for (int i = 0; i < kKeys; ++i) {
    const auto put = clients[0]->Put(KeyOf(i), "online");
    if (!put.ok()) {
      std::cerr << "put: " << put.status().message() << "\n";
      return 1;
    }
  }

  std::vector<int> found(kThreads);
  std::vector<uint64_t> remembered(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { found[i] = ReadAll(*clients[i], remembered[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    std::cout << "thread " << i << ": " << found[i] << " found, "
              << (remembered[i] * 2 > kKeys ? "most" : "few") << " of them where they were known"
              << " to lie\n";
  }
  return 0;
}
