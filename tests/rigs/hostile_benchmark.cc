// What a hostile neighbour costs an honest client, in one run: times of its PUTs and GETs alone,
// beside another honest client that does as much as it can, beside a client that scribbles over its
// rings and comes again each time that it is dropped, and beside one that sends the admin endpoint
// what is no HTTP. In turn, several times; medians of the rounds.
//
//   bazel-bin/tests/rigs/hostile_benchmark --kvd=bazel-bin/server/kvd --seconds=2 --rounds=7
//
// Where there are fewer processors than processes, that is mostly about whose turn it is. What is
// left with --pace_us=500 --idle_neighbours is kvd's own doing: the client leaves time between its
// operations, and a neighbour has a processor only while nobody else wants it.
#include <arpa/inet.h>
#include <gflags/gflags.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"
#include "tests/conformance/raw_shm_client.h"
#include "tests/support/kvd_process.h"

DEFINE_string(kvd, "", "path of the kvd binary");
DEFINE_double(seconds, 2, "of each measurement");
DEFINE_uint32(rounds, 7, "measurements of each kind");
DEFINE_uint32(pace_us, 0, "the client sleeps for so long after each PUT and GET");
DEFINE_bool(idle_neighbours, false, "neighbours get what time of processors others leave");
DEFINE_uint64(seed, 1, "of what the hostile clients do");

namespace kvd::test {
namespace {

// Has nothing to do with kvd but that it wants a processor.
[[noreturn]] void Spin() {
  Random random(FLAGS_seed);
  std::atomic<uint64_t> sum{0};
  for (;;) sum.store(random.Next(), std::memory_order_relaxed);
}

[[noreturn]] void Honest(const std::string& path) {
  const auto client = Client::Connect("shm:" + path);
  if (!client.ok()) std::_Exit(1);
  std::string value(64, 'n');
  for (uint64_t i = 0;; ++i) {
    const std::string key = "neighbour " + std::to_string(i % 1000);
    static_cast<void>((*client)->Put(key, value));
    static_cast<void>((*client)->Get(key, value));
  }
}

[[noreturn]] void Scribble(const std::string& path) {
  Random random(FLAGS_seed);
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  hello.client_id = 77;
  hello.credits_wanted = 16;
  for (;;) {
    RawShmClient client(path);
    if (!client.Join(hello).has_value()) continue;
    auto* const words = reinterpret_cast<uint64_t*>(&client.header());
    const uint64_t count = client.layout().segment_bytes() / sizeof(uint64_t);
    for (int i = 0; i < 5000; ++i) {
      const uint64_t at = random.OneIn(2) ? random.Uniform(64) : random.Uniform(count);
      const uint64_t value =
          random.OneIn(2) ? random.Next() : random.Uniform(4) << 32 | random.Uniform(4);
      std::atomic_ref<uint64_t>(words[at]).store(value, std::memory_order_relaxed);
      if (i % 500 == 0 && client.SendObject(random.Next()) != 0) break;
    }
  }
}

[[noreturn]] void SendGarbage(uint16_t port) {
  Random random(FLAGS_seed);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string bytes(8192, '\0');
  for (;;) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) continue;
    for (char& c : bytes) c = static_cast<char>(random.Next());
    const std::string request =
        random.OneIn(2) ? bytes : "GET /" + bytes + " HTTP/1.1\r\nHost: h\r\n";
    if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) continue;
    if (random.OneIn(2)) continue;
    const timeval patience{0, 10'000};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char answer[4096];
    while (recv(fd.get(), answer, sizeof(answer), 0) > 0) {
    }
  }
}

struct Times {
  double p50_us = 0;
  double p99_us = 0;
};

Times Percentiles(std::vector<int64_t>& ns) {
  if (ns.empty()) return {};
  std::sort(ns.begin(), ns.end());
  return {static_cast<double>(ns[ns.size() / 2]) / 1000,
          static_cast<double>(ns[ns.size() * 99 / 100]) / 1000};
}

struct Measured {
  Times put;
  Times get;
};

Measured Measure(Client& client) {
  std::vector<int64_t> puts;
  std::vector<int64_t> gets;
  const auto now = [] { return RealClock::Get().NowMonotonicNs(); };
  const int64_t end_ns = now() + static_cast<int64_t>(FLAGS_seconds * 1e9);
  std::string value(64, 'v');
  int64_t at_ns = now();
  for (uint64_t i = 0; at_ns < end_ns; ++i) {
    const std::string key = "key " + std::to_string(i % 1000);
    const bool put = client.Put(key, value).ok();
    const int64_t put_ns = now();
    const bool got = client.Get(key, value).ok();
    const int64_t got_ns = now();
    if (!put || !got) {
      std::fprintf(stderr, "hostile_benchmark: an operation failed\n");
      std::exit(1);
    }
    puts.push_back(put_ns - at_ns);
    gets.push_back(got_ns - put_ns);
    if (FLAGS_pace_us != 0) usleep(FLAGS_pace_us);
    at_ns = now();
  }
  return {Percentiles(puts), Percentiles(gets)};
}

struct Neighbour {
  const char* name;
  std::function<void()> run;
  std::vector<Measured> measured = {};
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Measured MedianOf(const std::vector<Measured>& all) {
  const auto of = [&](double Times::*time, Times Measured::*kind) {
    std::vector<double> values;
    for (const Measured& one : all) values.push_back(one.*kind.*time);
    return Median(values);
  };
  return {{of(&Times::p50_us, &Measured::put), of(&Times::p99_us, &Measured::put)},
          {of(&Times::p50_us, &Measured::get), of(&Times::p99_us, &Measured::get)}};
}

int Main() {
  KvdProcess kvd;
  const absl::Status started = kvd.Start(FLAGS_kvd, {"--memory=64m", "--admin=127.0.0.1:0"});
  const auto client = Client::Connect(kvd.target());
  const std::string log = kvd.Log();
  const size_t port_at = log.find("http://127.0.0.1:");
  if (!started.ok() || !client.ok() || port_at == std::string::npos) {
    std::fprintf(stderr, "hostile_benchmark: kvd does not serve\n%s", log.c_str());
    return 1;
  }
  const auto port = static_cast<uint16_t>(std::atoi(log.c_str() + port_at + 17));
  const std::string path = kvd.socket_path();
  std::array<Neighbour, 5> neighbours = {
      Neighbour{"alone", nullptr}, Neighbour{"busy", [] { Spin(); }},
      Neighbour{"honest", [&] { Honest(path); }}, Neighbour{"scribbling", [&] { Scribble(path); }},
      Neighbour{"no_http", [&] { SendGarbage(port); }}};
  Measure(**client);
  for (uint32_t round = 0; round < FLAGS_rounds; ++round) {
    for (Neighbour& neighbour : neighbours) {
      const pid_t child = neighbour.run ? fork() : 0;
      if (child == 0 && neighbour.run) {
        const sched_param none{};
        if (FLAGS_idle_neighbours && sched_setscheduler(0, SCHED_IDLE, &none) != 0) std::_Exit(1);
        neighbour.run();
      }
      neighbour.measured.push_back(Measure(**client));
      if (child == 0) continue;
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  const Measured alone = MedianOf(neighbours[0].measured);
  const Measured busy = MedianOf(neighbours[1].measured);
  std::printf("%-10s  %10s  %10s  %8s  %8s  %10s  %10s  %8s  %8s\n", "neighbour", "PUT p50 us",
              "PUT p99 us", "to alone", "to busy", "GET p50 us", "GET p99 us", "to alone",
              "to busy");
  for (const Neighbour& neighbour : neighbours) {
    const Measured m = MedianOf(neighbour.measured);
    std::printf("%-10s  %10.2f  %10.2f  %8.2f  %8.2f  %10.2f  %10.2f  %8.2f  %8.2f\n",
                neighbour.name, m.put.p50_us, m.put.p99_us, m.put.p99_us / alone.put.p99_us,
                m.put.p99_us / busy.put.p99_us, m.get.p50_us, m.get.p99_us,
                m.get.p99_us / alone.get.p99_us, m.get.p99_us / busy.get.p99_us);
  }
  return 0;
}

}  // namespace
}  // namespace kvd::test

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_kvd.empty() || FLAGS_rounds == 0) {
    std::fprintf(stderr, "hostile_benchmark: --kvd, 1 round or more\n");
    return 1;
  }
  return kvd::test::Main();
}
