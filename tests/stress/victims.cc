#include "tests/stress/victims.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "common/base/random.h"
#include "tests/stress/hunt_value.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

[[noreturn]] void RunVictim(const std::string& target, uint64_t seed) {
  auto client = Client::Connect(target);
  if (!client.ok()) std::_Exit(1);
  Random random(seed);
  std::string value;
  for (uint64_t generation = seed << 20 | 1;; ++generation) {
    const uint64_t key = random.Uniform(kVictimKeys);
    if (IsDelete(generation)) continue;
    MakeHuntValue(key, generation, value);
    if (!(*client)->Put(HuntKey(key), value).ok()) std::_Exit(1);
    static_cast<void>((*client)->Get(HuntKey(key), value));
  }
}

}  // namespace

std::unique_ptr<Client> ConnectTo(const KvdProcess& kvd, const ClientOptions& options) {
  auto client = Client::Connect(kvd.target(), options);
  KVD_REQUIRE_OK(client);
  return *std::move(client);
}

uint64_t Stat(Client& client, const std::string& name) {
  const auto stats = client.Stats();
  KVD_REQUIRE_OK(stats);
  for (const auto& [key, value] : *stats) {
    if (key == name) return std::strtoull(value.c_str(), nullptr, 10);
  }
  FAIL("kvd has no statistic " << name);
  return 0;
}

bool Eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 10'000; ++tries) {
    if (holds()) return true;
    usleep(1000);
  }
  return false;
}

size_t OpenDescriptors(pid_t pid) {
  DIR* directory = opendir(("/proc/" + std::to_string(pid) + "/fd").c_str());
  size_t count = 0;
  while (directory != nullptr && readdir(directory) != nullptr) ++count;
  if (directory != nullptr) closedir(directory);
  return count;
}

pid_t StartVictim(const std::string& target, uint64_t seed) {
  const pid_t child = fork();
  if (child == 0) RunVictim(target, seed);
  return child;
}

bool KillVictim(pid_t victim) {
  kill(victim, SIGKILL);
  int status = 0;
  waitpid(victim, &status, 0);
  return WIFSIGNALED(status);
}

}  // namespace kvd::test
