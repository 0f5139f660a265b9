// Many clients at once, and clients that die, over RDMA: others go on, and everything that they
// held comes back.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "common/base/unique_fd.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/stress/hunt_value.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::seconds;

ClientOptions Patient() {
  ClientOptions options;
  options.deadline = seconds(60);
  return options;
}

// What the kernel holds for RDMA users: queues, ids, memory regions. Without the memory regions of
// `server`: kvd keeps the registered memory for as many clients as it ever had at once.
std::string RdmaResources(const std::string& server) {
  std::string text;
  FILE* pipe = popen("rdma resource show", "r");
  REQUIRE(pipe != nullptr);
  char buffer[512];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) {
    std::istringstream words(buffer);  // 0: rxea: pd 3 cq 2 qp 2 cm_id 1 mr 2 ctx 2 srq 0
    std::string number, device, name, count;
    words >> number >> device;
    text += device;
    while (words >> name >> count) {
      if (name != "mr" || device != server + ":") text += " " + name + " " + count;
    }
    text += "\n";
  }
  pclose(pipe);
  return text;
}

// What a kvd and the kernel hold for sessions, to be the same before and after.
struct Held {
  uint64_t sessions = 0;
  uint64_t heap_used_bytes = 0;
  size_t descriptors = 0;
  std::string rdma;

  bool operator==(const Held&) const = default;
};

// A kvd that RDMA clients reach, and an observer over shared memory, which no fault of RDMA
// touches.
class Rig {
 public:
  explicit Rig(std::vector<std::string> flags) : environment(FindRdmaEnvironment()) {
    if (!environment.disposable || environment.sides.empty())
      KVD_SKIP("others may use RDMA on this machine");
    const std::string listen = environment.server().address + ":7711";
    target = "rdma:" + listen;
    flags.insert(flags.end(), {"--listen=" + listen, "--insecure"});
    KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), flags));
    observer = ConnectTo(kvd);
  }

  std::unique_ptr<Client> Connect() const {
    auto client = Client::Connect(target);
    KVD_REQUIRE_OK(client);
    return *std::move(client);
  }

  // A client that has the buffers it needs.
  std::unique_ptr<Client> Bystander() const {
    auto client = Connect();
    KVD_REQUIRE_OK(client->Put("bystander", "was there"));
    KVD_REQUIRE_OK(client->Get("bystander").status());
    return client;
  }

  Held Holds() const {
    return {Stat(*observer, "sessions"), Stat(*observer, "heap_used_bytes"),
            OpenDescriptors(kvd.pid()), RdmaResources(environment.server().device)};
  }

  void RequireBackTo(const Held& before) const {
    Held now;
    bool back = false;
    // Each look starts a program, which takes long enough in the guest.
    for (int tries = 0; tries < 200 && !back; ++tries) back = (now = Holds()) == before;
    INFO("before: " << before.sessions << " sessions, " << before.heap_used_bytes << " bytes, "
                    << before.descriptors << " descriptors\n"
                    << before.rdma << "now: " << now.sessions << " sessions, "
                    << now.heap_used_bytes << " bytes, " << now.descriptors << " descriptors\n"
                    << now.rdma);
    REQUIRE(back);
  }

  RdmaEnvironment environment;
  std::string target;
  KvdProcess kvd;
  std::unique_ptr<Client> observer;
};

// --- A storm of connections ---

constexpr int kProcesses = 5;
constexpr int kThreads = 20;  // of each, and a client of each

// A line about each client: "served", "refused WHY" or "wrong WHAT". None leaves before all of the
// process have tried.
std::string RunStormClients(const std::string& target, int process) {
  std::mutex mutex;
  std::string lines;
  std::latch all_tried(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto client = Client::Connect(target, Patient());
      std::string line = "served";
      const std::string key = "storm " + std::to_string(process) + " " + std::to_string(i);
      std::string value;
      if (!client.ok()) {
        line = (absl::IsUnavailable(client.status()) ? "refused " : "wrong ") +
               client.status().ToString();
      } else if (const auto put = (*client)->Put(key, key); !put.ok()) {
        line = "wrong " + put.status().ToString();
      } else if (const absl::Status got = (*client)->Get(key, value); !got.ok() || value != key) {
        line = "wrong " + got.ToString() + " " + value;
      }
      all_tried.arrive_and_wait();
      const std::lock_guard lock(mutex);
      lines += line + "\n";
    });
  }
  for (std::thread& thread : threads) thread.join();
  return lines;
}

struct StormProcess {
  pid_t pid;
  int lines_fd;
};

StormProcess StartStorm(const std::string& target, int process) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string lines = RunStormClients(target, process);
    const bool written =
        write(ends[1], lines.data(), lines.size()) == static_cast<ssize_t>(lines.size());
    std::_Exit(written ? 0 : 1);
  }
  close(ends[1]);
  return {child, ends[0]};
}

struct StormOutcome {
  int served = 0;
  std::vector<std::string> refused;
  std::vector<std::string> wrong;
};

// All at once, while `bystander` goes on.
StormOutcome Storm(const std::string& target, Client& bystander) {
  std::vector<StormProcess> processes;
  for (int i = 0; i < kProcesses; ++i) processes.push_back(StartStorm(target, i));
  StormOutcome outcome;
  std::string value;
  for (const StormProcess& process : processes) {
    pollfd lines{process.lines_fd, POLLIN, 0};
    while (poll(&lines, 1, 0) == 0) {
      KVD_REQUIRE_OK(bystander.Put("bystander", "goes on", {.deadline = seconds(60)}));
      KVD_REQUIRE_OK(bystander.Get("bystander", value, nullptr, {.deadline = seconds(60)}));
      REQUIRE(value == "goes on");
    }
    FILE* file = fdopen(process.lines_fd, "r");
    char line[1024];
    while (std::fgets(line, sizeof(line), file) != nullptr) {
      const std::string text = line;
      if (text == "served\n") {
        ++outcome.served;
      } else {
        (text.starts_with("refused ") ? outcome.refused : outcome.wrong).push_back(text);
      }
    }
    std::fclose(file);
    waitpid(process.pid, nullptr, 0);
  }
  return outcome;
}

// --- No descriptors ---

// User and system time of a process so far, in clock ticks.
long ProcessorTicks(pid_t pid) {
  FILE* file = fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  REQUIRE(file != nullptr);
  char text[1024] = {};
  REQUIRE(fread(text, 1, sizeof(text) - 1, file) > 0);
  std::fclose(file);
  std::istringstream words(std::strrchr(text, ')') + 1);
  std::string skipped;
  for (int field = 3; field < 14; ++field) words >> skipped;
  long user = 0;
  long system = 0;
  words >> user >> system;
  return user + system;
}

UniqueFd Dial(const std::string& address, uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, address.c_str(), &to.sin_addr) == 1);
  REQUIRE(connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0);
  return fd;
}

// --- Clients that die ---

// A value that says of each 8 bytes which of `generation`'s they are.
std::string LargeValue(uint64_t generation, size_t bytes) {
  std::string value(bytes, '\0');
  for (size_t at = 0; at + 8 <= bytes; at += 8) {
    const uint64_t word = generation << 32 | at / 8;
    std::memcpy(value.data() + at, &word, 8);
  }
  return value;
}

}  // namespace

TEST_CASE(
    "RDMA clients: a hundred that connect at once are served or told why not, and leave nothing") {
  const Rig rig({"--memory=64m"});
  const auto bystander = rig.Bystander();
  const Held before = rig.Holds();
  const StormOutcome outcome = Storm(rig.target, *bystander);
  for (const std::string& line : outcome.wrong) UNSCOPED_INFO(line);
  CHECK(outcome.wrong.empty());
  CHECK(outcome.served + static_cast<int>(outcome.refused.size()) == kProcesses * kThreads);
  CHECK(outcome.served > kProcesses * kThreads / 2);
  // A machine that is busy enough lets some say hello, or go on after it, too late.
  for (const std::string& line : outcome.refused) {
    CHECK_THAT(line, Catch::Contains("no hello within") ||
                         Catch::Contains("the connection ended while it was made") ||
                         Catch::Contains("the server ended the connection while it was made"));
  }
  Held expected = before;
  expected.heap_used_bytes = Stat(*rig.observer, "heap_used_bytes");  // their items stay
  rig.RequireBackTo(expected);
}

TEST_CASE(
    "RDMA clients: of a hundred those over --max_clients are refused with that reason, and the "
    "others served") {
  const Rig rig({"--memory=64m", "--max_clients=12"});
  const auto bystander = rig.Bystander();
  const Held before = rig.Holds();
  const StormOutcome outcome = Storm(rig.target, *bystander);
  for (const std::string& line : outcome.wrong) UNSCOPED_INFO(line);
  CHECK(outcome.wrong.empty());
  CHECK(outcome.served >= 1);
  CHECK(outcome.refused.size() >= kThreads - 12);  // of one process alone
  CHECK(outcome.served + static_cast<int>(outcome.refused.size()) == kProcesses * kThreads);
  size_t full = 0;
  for (const std::string& line : outcome.refused) {
    const bool is_full = line.find("--max_clients=12") != std::string::npos;
    full += is_full ? 1 : 0;
    INFO(line);
    CHECK((is_full || line.find("no hello within") != std::string::npos ||
           line.find("while it was made") != std::string::npos));
  }
  CHECK(full > 0);
  Held expected = before;
  expected.heap_used_bytes = Stat(*rig.observer, "heap_used_bytes");
  rig.RequireBackTo(expected);
  const auto later = rig.Connect();
  KVD_REQUIRE_OK(later->Put("later", "fits again"));
}

TEST_CASE(
    "RDMA clients: one that is killed while its large value is pulled changes nothing and holds "
    "nothing") {
  constexpr size_t kBytes = 16 << 20;
  const Rig rig({"--memory=96m"});
  if (rig.environment.sides.size() < 2) KVD_SKIP("there is no wire to slow down");
  const auto bystander = rig.Bystander();
  const std::string old_value = LargeValue(1, kBytes);
  KVD_REQUIRE_OK(rig.observer->Put("large", old_value));
  const std::string netdev = rig.environment.client().netdev;
  REQUIRE(std::system(
              ("tc qdisc replace dev " + netdev + " root netem limit 100000 delay 20ms").c_str()) ==
          0);
  const Held before = rig.Holds();
  const uint64_t pulled_before = Stat(*rig.observer, "rdma_pulled_bytes");
  std::string value;
  constexpr int kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    const std::string new_value = LargeValue(static_cast<uint64_t>(round) + 2, kBytes);
    const pid_t victim = fork();
    REQUIRE(victim >= 0);
    if (victim == 0) {
      const auto client = Client::Connect(rig.target, Patient());
      if (client.ok()) static_cast<void>((*client)->Put("large", new_value));
      for (;;) pause();
    }
    // Its memory is taken as soon as the pull begins.
    REQUIRE(Eventually(
        [&] { return Stat(*rig.observer, "heap_used_bytes") >= before.heap_used_bytes + kBytes; }));
    REQUIRE(KillVictim(victim));
    rig.RequireBackTo(before);
    KVD_REQUIRE_OK(bystander->Get("bystander", value, nullptr, {.deadline = seconds(60)}));
    KVD_REQUIRE_OK(rig.observer->Get("large", value));
    REQUIRE((value == old_value || value == new_value));
    if (value != old_value) KVD_REQUIRE_OK(rig.observer->Put("large", old_value));
  }
  const uint64_t whole_pulls = (Stat(*rig.observer, "rdma_pulled_bytes") - pulled_before) / kBytes;
  REQUIRE(std::system(("tc qdisc del dev " + netdev + " root").c_str()) == 0);
  INFO(whole_pulls << " of " << kRounds << " had been pulled whole before the kill");
  CHECK(whole_pulls < kRounds);
  const auto next = rig.Connect();
  KVD_REQUIRE_OK(next->Put("large", LargeValue(99, kBytes), {.deadline = seconds(60)}));
}

TEST_CASE("RDMA clients: eight that are killed under load leave whole values, and others go on") {
  const Rig rig({"--memory=64m"});
  const auto bystander = rig.Bystander();
  const Held before = rig.Holds();
  Random random(Seed());
  std::string value;
  for (uint64_t round = 1; round <= 3; ++round) {
    std::vector<pid_t> victims;
    for (uint64_t i = 0; i < 8; ++i) victims.push_back(StartVictim(rig.target, round * 8 + i));
    const uint64_t puts = Stat(*rig.observer, "puts");
    REQUIRE(
        Eventually([&] { return Stat(*rig.observer, "puts") > puts + random.Between(50, 200); }));
    for (const pid_t victim : victims) {
      REQUIRE(KillVictim(victim));
      KVD_REQUIRE_OK(bystander->Put("bystander", "goes on"));
      KVD_REQUIRE_OK(bystander->Get("bystander", value));
      REQUIRE(value == "goes on");
    }
    for (uint64_t key = 0; key < kVictimKeys; ++key) {
      const absl::Status got = rig.observer->Get(HuntKey(key), value);
      INFO("key " << key << ": " << got);
      REQUIRE((absl::IsNotFound(got) || got.ok()));
      if (got.ok()) REQUIRE(CertifyHuntValue(key, value).has_value());
      const absl::Status deleted = rig.observer->Delete(HuntKey(key));
      REQUIRE((absl::IsNotFound(deleted) || deleted.ok()));
    }
    rig.RequireBackTo(before);
  }
}

TEST_CASE("RDMA clients: a child of fork() is refused, and its parent goes on undisturbed") {
  const Rig rig({"--memory=64m"});
  auto client = rig.Bystander();
  std::string large(1 << 20, 'l');
  KVD_REQUIRE_OK(client->Put("large", large));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::string value;
    const bool refused = absl::IsFailedPrecondition(client->Get("large", value)) &&
                         absl::IsFailedPrecondition(client->Put("large", "child").status());
    client.reset();  // leaves the parent's queue pair alone
    std::_Exit(refused ? 0 : 1);
  }
  // While the child lives as after it: pages that both have must still be those that the device knows.
  std::string value;
  for (const bool gone : {false, true}) {
    CAPTURE(gone);
    large.assign(large.size(), gone ? 'm' : 'n');
    KVD_REQUIRE_OK(client->Put("large", large, {.deadline = seconds(60)}));
    KVD_REQUIRE_OK(client->Get("large", value, nullptr, {.deadline = seconds(60)}));
    REQUIRE((value == large));
    int status = 0;
    if (!gone) waitpid(child, &status, 0);
    REQUIRE(status == 0);
  }
}

TEST_CASE(
    "RDMA clients: a kvd without descriptors tells those that come by TCP, and does not spin") {
  const Rig rig({"--memory=64m", "--connect=tcp"});
  const rlimit few{OpenDescriptors(rig.kvd.pid()) + 8, 4096};
  REQUIRE(prlimit(rig.kvd.pid(), RLIMIT_NOFILE, &few, nullptr) == 0);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(Dial(rig.environment.server().address, 7711));
  const long before = ProcessorTicks(rig.kvd.pid());
  usleep(1'000'000);  // the silent ones are given up after two
  CHECK(ProcessorTicks(rig.kvd.pid()) - before < sysconf(_SC_CLK_TCK) / 2);
  ClientOptions options;
  options.rdma_connect_by_tcp = true;
  options.wait_for_server = false;
  bool told = false;
  for (int i = 0; i < 100 && !told; ++i) {
    const auto client = Client::Connect(rig.target, options);
    if (client.ok()) break;
    told = MessageOf(client).find("no descriptors left") != std::string::npos;
  }
  CHECK(told);
  silent.clear();
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(rig.target, options);
  REQUIRE(Eventually([&] {
    if (!client.ok()) client = Client::Connect(rig.target, options);
    return client.ok();
  }));
  KVD_REQUIRE_OK((*client)->Put("key", "value"));
}

}  // namespace kvd::test
