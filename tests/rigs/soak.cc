// Mixed load on one kvd for as long as you like: the index grows and shrinks, items expire and are
// evicted, values have 64 bytes to 4 MiB, clients connect anew and are killed. After each cycle the
// clients end, the store is flushed, and kvd must have back what it had before: sessions,
// descriptors, mappings, memory of its own, memory of the region in pieces no smaller; over RDMA
// also queue pairs and memory regions.
//
//   soak --kvd=PATH_OF_KVD --seconds=3600 --seed=1
//
// Prints what was counted and held, a line each, the latter after each cycle. Exit: 0 all was
// right; 3 an answer was wrong or something was not given back, with what on stderr; 1 it could not
// run.
#include <gflags/gflags.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "client/kv_client.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/random.h"
#include "common/base/units.h"
#include "tests/stress/hunt_value.h"
#include "tests/support/kvd_process.h"

DEFINE_string(kvd, "", "path of the kvd binary");
DEFINE_double(seconds, 10, "begin cycles for so long");
DEFINE_uint64(cycles, 3, "and at least so many");
DEFINE_uint64(cycle_operations, 20'000,
              "operations of a cycle, together; four times as many where all values are small, a "
              "quarter where many are large");
DEFINE_uint64(seed, 1, "seed of every choice");
DEFINE_uint32(clients, 4, "client processes at once");
DEFINE_uint64(memory_mib, 128, "kvd's memory");
DEFINE_string(rdma, "",
              "address of an RDMA device: kvd serves there too, and all but every fourth client "
              "use it");
DEFINE_uint32(left_connected, 0,
              "clients that stay connected at the end of a cycle, a fault that must be found");

namespace kvd::test {
namespace {

constexpr uint32_t kClientsMax = 64;
constexpr size_t kValueBytesMin = 64;
constexpr size_t kValueBytesMax = 4 * kMiB;
constexpr int kLooks = 1000;  // for what comes back within seconds
constexpr useconds_t kLookUs = 10'000;
// For a minute kvd keeps what it answered clients that went, in case they come back. What it then
// has of memory of its own it should have for ever.
constexpr int64_t kWarmUpNs = 120'000'000'000;
// Of memory of kvd's own: malloc keeps some of what was freed, and not always the same.
constexpr uint64_t kOwnMemorySlackBytes = 4 * kMiB;
constexpr uint64_t kMappingsSlack = 16;

enum ExitStatus { kRight = 0, kFailed = 1, kWrong = 3 };

// What clients count, in memory that outlives them.
struct Board {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> operations{0};
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> hits{0};
  std::atomic<uint64_t> absent{0};  // written by the reader, and expired or evicted since
  std::atomic<uint64_t> reconnects{0};
  std::atomic<uint64_t> wrong_answers{0};
};

// What a cycle is like.
struct Shape {
  const char* name;
  uint64_t keys;           // of each client
  uint32_t large_one_in;   // values of up to kValueBytesMax
  uint32_t medium_one_in;  // of up to 64 KiB
  uint64_t quarters;       // of --cycle_operations
};
constexpr std::array<Shape, 3> kShapes = {{
    {"small", 100'000, 4000, 500, 16},
    {"mixed", 4000, 50, 10, 4},
    {"large", 100, 2, 2, 1},
}};

// One client process. Its keys are its own, so it knows what each must have: its last write, or
// nothing, for items may expire and be evicted.
class SoakClient {
 public:
  SoakClient(Board& board, std::string target, const Shape& shape, uint64_t number)
      : board_(board),
        target_(std::move(target)),
        shape_(shape),
        number_(number),
        random_(Mix64(FLAGS_seed) + number),
        generations_(shape.keys, 0) {}

  int Run() {
    if (!Connect()) return kFailed;
    while (!board_.stop.load(std::memory_order_relaxed)) {
      const uint64_t key = random_.Uniform(shape_.keys);
      bool good = true;
      switch (random_.Uniform(16)) {
        case 0:
          good = Delete(key);
          break;
        case 1:
          good = Count();
          break;
        case 2:
        case 3:
        case 4:
        case 5:
        case 6:
          good = Read(key);
          break;
        default:
          good = Write(key);
      }
      if (!good) return kWrong;
      board_.operations.fetch_add(1, std::memory_order_relaxed);
      if (random_.OneIn(3000)) {
        board_.reconnects.fetch_add(1);
        if (!Connect()) return kFailed;
      }
    }
    return kRight;
  }

 private:
  bool Connect() {
    client_.reset();
    ClientOptions options;
    options.deadline = std::chrono::seconds(60);
    options.location_cache_entries = number_ % 2 == 0 ? 1024 : 0;
    auto client = Client::Connect(target_, options);
    if (!client.ok()) return Wrong("connect", client.status().ToString());
    client_ = *std::move(client);
    return true;
  }

  uint64_t Id(uint64_t key) const { return number_ << 32 | key; }

  // All sizes of a range are as likely in each of its octaves.
  size_t AnySize() {
    const size_t most = random_.OneIn(shape_.large_one_in)    ? kValueBytesMax
                        : random_.OneIn(shape_.medium_one_in) ? 64 * kKiB
                                                              : 1000;
    const size_t octaves = std::bit_width(most / kValueBytesMin) - 1;
    const size_t least = kValueBytesMin << random_.Uniform(octaves + 1);
    return random_.Between(least, std::min(2 * least, most));
  }

  bool Write(uint64_t key) {
    WriteOptions options;
    if (random_.OneIn(4)) options.ttl = std::chrono::milliseconds(random_.Between(20, 5000));
    const uint64_t generation = ++next_generation_;
    MakeStampedValue(Id(key), generation, AnySize(), value_);
    const absl::Status status = client_->Put(HuntKey(Id(key)), value_, options).status();
    if (!status.ok()) return Wrong("put", status.ToString());
    generations_[key] = generation;
    board_.written_bytes.fetch_add(value_.size(), std::memory_order_relaxed);
    return true;
  }

  bool Delete(uint64_t key) {
    const absl::Status status = client_->Delete(HuntKey(Id(key)));
    if (!status.ok() && !absl::IsNotFound(status)) return Wrong("delete", status.ToString());
    generations_[key] = 0;
    return true;
  }

  bool Read(uint64_t key) {
    const absl::Status status = client_->Get(HuntKey(Id(key)), value_);
    if (absl::IsNotFound(status)) {
      if (generations_[key] != 0) board_.absent.fetch_add(1, std::memory_order_relaxed);
      generations_[key] = 0;  // and stays away
      return true;
    }
    if (!status.ok()) return Wrong("get", status.ToString());
    const auto generation = CertifyStampedValue(Id(key), value_);
    if (!generation.has_value()) return Wrong("get", "the value is none that was written");
    if (*generation != generations_[key]) {
      return Wrong("get", "write " + std::to_string(*generation) + " instead of " +
                              std::to_string(generations_[key]));
    }
    board_.hits.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  bool Count() {
    const auto result = client_->Increment("count:" + std::to_string(number_), 1);
    if (!result.ok()) return Wrong("increment", result.status().ToString());
    if (result->value != count_ + 1 && result->value != 1) {
      return Wrong("increment", std::to_string(result->value) + " after " + std::to_string(count_));
    }
    count_ = result->value;
    return true;
  }

  bool Wrong(const char* what, const std::string& how) {
    std::fprintf(stderr, "soak: client %lu: %s: %s (seed %lu)\n", number_, what, how.c_str(),
                 FLAGS_seed);
    board_.wrong_answers.fetch_add(1);
    board_.stop.store(true);
    return false;
  }

  Board& board_;
  const std::string target_;
  const Shape& shape_;
  const uint64_t number_;
  Random random_;
  std::unique_ptr<Client> client_;
  std::vector<uint64_t> generations_;  // of each key: what it has, unless that went; 0: nothing
  uint64_t next_generation_ = 0;
  int64_t count_ = 0;
  std::string value_;
};

// What kvd and the kernel hold.
struct Held {
  std::map<std::string, uint64_t> numbers;
  std::string rdma;  // queues, ids, memory regions of each device
};

class Soak {
 public:
  int Run() {
    if (!Start()) return kFailed;
    const auto now_ns = [] { return RealClock::Get().NowMonotonicNs(); };
    const int64_t begin_ns = now_ns();
    const int64_t end_ns = begin_ns + static_cast<int64_t>(FLAGS_seconds * 1e9);
    for (cycle_ = 0; good_; ++cycle_) {
      if (cycle_ >= FLAGS_cycles && now_ns() >= end_ns) break;
      warming_up_ = now_ns() < begin_ns + kWarmUpNs;
      const Shape& shape = kShapes[cycle_ % kShapes.size()];
      Load(shape);
      if (board_.wrong_answers.load() == 0) GiveBack(shape);
      good_ = good_ && board_.wrong_answers.load() == 0;
    }
    Print();
    return good_ ? kRight : kWrong;
  }

 private:
  bool Start();
  void StartClient(size_t place, const Shape& shape);
  void Load(const Shape& shape);
  void GiveBack(const Shape& shape);
  Held Look(Client& client) const;
  std::string Missing(const Held& now) const;
  uint64_t LargeValuesThatFit(Client& client);
  void Print() const;
  void NotGivenBack(const std::string& what) {
    std::fprintf(stderr, "soak: cycle %lu: %s (seed %lu)\n", cycle_, what.c_str(), FLAGS_seed);
    good_ = false;
  }

  Board& board_ = MakeBoard();
  KvdProcess kvd_;
  Random random_{FLAGS_seed};
  std::vector<pid_t> clients_ = std::vector<pid_t>(FLAGS_clients);
  uint64_t clients_started_ = 0;
  uint64_t client_kills_ = 0;
  uint64_t cycle_ = 0;
  std::map<std::string, uint64_t> counts_;  // of kvd, at the last look
  uint64_t large_values_ = 0;               // that fit an empty kvd
  Held before_;                             // at the end of the first cycles
  bool warming_up_ = true;
  bool good_ = true;
  std::vector<std::unique_ptr<Client>> left_connected_;

  static Board& MakeBoard();
};

Board& Soak::MakeBoard() {
  void* const memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("soak: mmap");
    std::exit(kFailed);
  }
  return *new (memory) Board;
}

bool Soak::Start() {
  std::vector<std::string> flags = {"--memory=" + std::to_string(FLAGS_memory_mib) + "m",
                                    "--evict=lru", "--pollers=2"};
  if (!FLAGS_rdma.empty())
    flags.insert(flags.end(), {"--listen=" + FLAGS_rdma + ":7711", "--insecure"});
  const absl::Status started = kvd_.Start(FLAGS_kvd, flags);
  if (!started.ok()) std::fprintf(stderr, "soak: %s\n", started.ToString().c_str());
  const auto client = Client::Connect(kvd_.target());
  if (!started.ok() || !client.ok()) return false;
  large_values_ = LargeValuesThatFit(**client);
  return large_values_ > 0;
}

void Soak::StartClient(size_t place, const Shape& shape) {
  const uint64_t number = ++clients_started_;
  const bool over_rdma = !FLAGS_rdma.empty() && place % 4 != 3;
  const std::string target = over_rdma ? "rdma:" + FLAGS_rdma + ":7711" : kvd_.target();
  clients_[place] = fork();
  if (clients_[place] == 0) std::_Exit(SoakClient(board_, target, shape, number).Run());
}

// Clients come, work and are killed, until the operations of the cycle are done.
void Soak::Load(const Shape& shape) {
  board_.stop.store(false);
  for (size_t place = 0; place < clients_.size(); ++place) StartClient(place, shape);
  const uint64_t operations = FLAGS_cycle_operations * shape.quarters / 4;
  const uint64_t begin = board_.operations.load();
  uint64_t next_kill = begin;
  while (!board_.stop.load() && board_.operations.load() < begin + operations) {
    usleep(200);
    if (board_.operations.load() < next_kill) continue;
    next_kill = board_.operations.load() + random_.Between(1, operations / 20 + 1);
    const size_t place = random_.Uniform(clients_.size());
    kill(clients_[place], SIGKILL);
    waitpid(clients_[place], nullptr, 0);
    ++client_kills_;
    StartClient(place, shape);
  }
  board_.stop.store(true);
  for (const pid_t client : clients_) {
    int status = 0;
    waitpid(client, &status, 0);
    if (status != 0) NotGivenBack("a client ended with status " + std::to_string(status));
  }
}

void Soak::GiveBack(const Shape& shape) {
  auto client = Client::Connect(kvd_.target());
  for (uint32_t i = 0; i < FLAGS_left_connected; ++i)
    left_connected_.push_back(Client::Connect(kvd_.target()).value_or(nullptr));
  if (!client.ok()) return NotGivenBack(client.status().ToString());
  const Held full = Look(**client);
  if (const uint64_t fit = LargeValuesThatFit(**client); fit < large_values_) {
    return NotGivenBack("room for " + std::to_string(fit) + " large values instead of " +
                        std::to_string(large_values_));
  }
  std::string missing;
  Held now;
  for (int looks = 0; looks < kLooks; ++looks) {
    now = Look(**client);
    missing = Missing(now);
    if (missing.empty()) break;
    usleep(kLookUs);
  }
  std::printf("cycle %lu %s:", cycle_, shape.name);
  for (const char* name : {"items", "index_bytes", "heap_used_bytes"})
    std::printf(" %s %lu", name, full.numbers.at(name));
  std::printf("; afterwards:");
  for (const auto& [name, number] : now.numbers) std::printf(" %s %lu", name.c_str(), number);
  std::printf("%s\n", now.rdma.c_str());
  std::fflush(stdout);
  if (!missing.empty()) NotGivenBack("not given back:" + missing);
  // Each shape once: what kvd once took for as much at once it may keep.
  if (cycle_ < kShapes.size()) before_ = now;
  for (const char* name : {"own_memory_bytes", "mappings"}) {
    if (warming_up_) before_.numbers[name] = std::max(before_.numbers[name], now.numbers.at(name));
  }
}

// How many values of a quarter of the memory find room beside each other: fewer than at first, if
// what was free is in pieces. Leaves the store empty.
uint64_t Soak::LargeValuesThatFit(Client& client) {
  const std::string value(FLAGS_memory_mib * kMiB / 4 - 4 * kKiB, 'L');
  const auto key = [](int i) { return "large:" + std::to_string(i); };
  uint64_t there = 0;
  bool all = client.Flush("").ok();
  for (int i = 0; i < 4; ++i) all = all && client.Put(key(i), value).ok();
  for (int i = 0; i < 4; ++i) there += client.Exists(key(i)).value_or(false) ? 1 : 0;
  all = all && client.Flush("").ok();
  return all ? there : 0;
}

uint64_t LinesOf(const std::string& path) {
  std::ifstream file(path);
  uint64_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

Held Soak::Look(Client& client) const {
  Held held;
  const auto statistics = client.Stats();
  if (statistics.ok()) {
    for (const auto& [name, value] : *statistics) {
      for (const char* wanted : {"sessions", "items", "heap_used_bytes", "index_bytes"}) {
        if (name == wanted) held.numbers[name] = std::strtoull(value.c_str(), nullptr, 10);
      }
    }
  }
  const std::string process = "/proc/" + std::to_string(kvd_.pid());
  held.numbers["mappings"] = LinesOf(process + "/maps");
  std::ifstream status(process + "/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t number = 0;
    if (!(words >> name >> number)) continue;
    if (name == "RssAnon:") held.numbers["own_memory_bytes"] = number * kKiB;
    if (name == "Threads:") held.numbers["threads"] = number;
  }
  std::error_code error;
  for (std::filesystem::directory_iterator all(process + "/fd", error), end; all != end; ++all)
    ++held.numbers["descriptors"];
  if (FLAGS_rdma.empty()) return held;
  FILE* const pipe = popen("rdma resource show", "r");
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) held.rdma += line;
  if (pipe != nullptr) pclose(pipe);
  return held;
}

// What of the clients and their items kvd still has, or has more of than once.
std::string Soak::Missing(const Held& now) const {
  std::string missing;
  const auto at_most = [&](const std::string& name, uint64_t most) {
    const uint64_t number = now.numbers.at(name);
    if (number <= most) return;
    missing += " " + name + " " + std::to_string(number) + " for " + std::to_string(most);
  };
  at_most("sessions", 1);
  at_most("items", 0);
  at_most("heap_used_bytes", 0);
  if (cycle_ < kShapes.size()) return missing;
  at_most("descriptors", before_.numbers.at("descriptors"));
  at_most("threads", before_.numbers.at("threads"));
  at_most("index_bytes", before_.numbers.at("index_bytes"));
  if (now.rdma != before_.rdma) missing += " of RDMA\n" + now.rdma + "for\n" + before_.rdma;
  if (warming_up_) return missing;
  at_most("mappings", before_.numbers.at("mappings") + kMappingsSlack);
  at_most("own_memory_bytes", before_.numbers.at("own_memory_bytes") + kOwnMemorySlackBytes);
  return missing;
}

void Soak::Print() const {
  std::printf("seed %lu\ncycles %lu\noperations %lu\nwritten_bytes %lu\n", FLAGS_seed, cycle_,
              board_.operations.load(), board_.written_bytes.load());
  std::printf("hits %lu\nabsent %lu\nreconnects %lu\nclients %lu\nclient_kills %lu\n",
              board_.hits.load(), board_.absent.load(), board_.reconnects.load(), clients_started_,
              client_kills_);
  if (auto client = Client::Connect(kvd_.target()); client.ok()) {
    if (const auto statistics = (*client)->Stats(); statistics.ok()) {
      for (const auto& [name, value] : *statistics) {
        for (const char* wanted : {"expired_items", "evicted_items", "splits", "merges"}) {
          if (name == wanted) std::printf("%s %s\n", wanted, value.c_str());
        }
      }
    }
  }
  std::printf("wrong_answers %lu\n", board_.wrong_answers.load());
}

}  // namespace
}  // namespace kvd::test

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_kvd.empty() || FLAGS_clients < 1 || FLAGS_clients > kvd::test::kClientsMax ||
      FLAGS_memory_mib < 64) {
    std::fprintf(stderr, "soak: --kvd, 1 to 64 clients, 64 MiB at least\n");
    return 1;
  }
  return kvd::test::Soak().Run();
}
