// The kvd binary in life: readiness, second kvd, signals, death, limits, and what its CPU does
// while nothing happens.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/unique_fd.h"
#include "common/layout/superblock.h"
#include "common/protocol/request_codec.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/unix_socket.h"
#include "tests/conformance/raw_shm_client.h"
#include "tests/e2e/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

int64_t DeadlineNs() { return RealClock::Get().NowMonotonicNs() + 60'000'000'000; }

Hello MakeHello() {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = hello.version_max = kProtocolVersion;
  hello.client_id = 1;
  hello.credits_wanted = 16;
  return hello;
}

absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(const std::string& path) {
  return ShmClientChannel::Connect(path, MakeHello(), DeadlineNs());
}

absl::Status SendRequest(ClientChannel& channel, Opcode opcode, std::string_view key = {},
                         std::string_view value = {}, uint64_t argument = 0) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.request_id = 1;
  header.key_len = static_cast<uint16_t>(key.size());
  header.value_len = value.size();
  header.argument = argument;
  return channel.Send(FrameParts{std::as_bytes(std::span(&header, 1)), key, value});
}

absl::StatusOr<std::string> Call(ClientChannel& channel, Opcode opcode, std::string_view key = {},
                                 std::string_view value = {}, uint64_t argument = 0) {
  if (absl::Status sent = SendRequest(channel, opcode, key, value, argument); !sent.ok()) {
    return sent;
  }
  for (;;) {
    const auto frame = channel.PollReply();
    if (!frame.empty()) {
      ReplyView reply;
      REQUIRE(DecodeReply(frame, reply) == nullptr);
      if (reply.header.status != 0) return absl::UnknownError(absl::StrCat(reply.header.status));
      return std::string(reply.payload);
    }
    if (absl::Status waited = channel.Wait(DeadlineNs()); !waited.ok()) return waited;
  }
}

std::map<std::string, std::string> Statistics(ClientChannel& channel) {
  std::istringstream lines(Call(channel, Opcode::kStat).value());
  std::map<std::string, std::string> statistics;
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    REQUIRE(space != std::string::npos);
    REQUIRE(statistics.emplace(line.substr(0, space), line.substr(space + 1)).second);
  }
  return statistics;
}

uint64_t DescriptorsOf(pid_t pid) {
  struct stat facts;
  uint64_t count = 0;
  for (int fd = 0; fd < 20000; ++fd) {
    if (lstat(absl::StrCat("/proc/", pid, "/fd/", fd).c_str(), &facts) == 0) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("kvd: is ready when it serves, says where, and stops cleanly on SIGTERM and SIGINT") {
  for (const int signal : {SIGTERM, SIGINT}) {
    TempDir dir;
    const std::string path = dir.Join("s");
    KvdProcess kvd({"--shm=" + path});
    REQUIRE(kvd.WaitReady());
    const auto client = Connect(path);
    KVD_REQUIRE_OK(client);
    CHECK(Call(**client, Opcode::kPing, {}, "hello").value() == "hello");
    KVD_REQUIRE_OK(Call(**client, Opcode::kPut, "k", "v"));
    CHECK(Call(**client, Opcode::kGet, "k").value() == "v");

    kvd.Signal(signal);
    KVD_REQUIRE_CODE((*client)->Wait(DeadlineNs()), kUnavailable);
    CHECK_THAT(MessageOf((*client)->status()), Catch::Contains("shutting down"));
    const Ended ended = kvd.Wait();
    INFO(ended.err);
    CHECK(ended.exit_code == 0);
    CHECK(access(path.c_str(), F_OK) != 0);
    CHECK(access((path + ".lock").c_str(), F_OK) != 0);
    CHECK_THAT(ended.err, Catch::Contains("serves shared memory at " + path));
    CHECK_THAT(kvd.notifications(), Catch::Contains("STOPPING=1"));
    KVD_REQUIRE_CODE(Connect(path), kUnavailable);
  }
}

TEST_CASE("kvd: its threads have names, and its pages are told calmly") {
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--pollers=2", "--memory=16m"});
  REQUIRE(kvd.WaitReady());
  std::set<std::string> names;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", kvd.pid(), "/task"))) {
    std::ifstream comm(task.path() / "comm");
    std::string name;
    std::getline(comm, name);
    names.insert(name);
  }
  for (const char* name : {"kvd-poller-0", "kvd-poller-1", "kvd-accept", "kvd-lifeline"}) {
    CHECK(names.contains(name));
  }
  const auto client = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(client);
  CHECK(Statistics(**client)["page_fallback"].size() <= 60);
  kvd.Signal(SIGTERM);
  const Ended ended = kvd.Wait();
  CHECK_THAT(ended.err, Catch::Contains("region: 16 MiB in "));
  for (const char* alarming : {"mmap", "errno", "ENOMEM", "Cannot allocate"}) {
    CHECK_THAT(ended.err, !Catch::Contains(alarming));
  }
}

TEST_CASE("kvd: a standard error that nobody reads holds up neither clients nor signals") {
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const UniqueFd reader(pipe_ends[0]);
  const UniqueFd writer(pipe_ends[1]);
  while (write(writer.get(), "x", 1) == 1) {
  }
  REQUIRE(fcntl(writer.get(), F_SETFL, 0) == 0);
  TempDir dir;
  const std::string keys = dir.Join("keys");
  std::ofstream(keys) << "user 4242 read\n";
  REQUIRE(chmod(keys.c_str(), 0600) == 0);
  KvdProcess::Options options;
  options.arguments = {"--shm=" + dir.Join("s"), "--keys=" + keys, "--audit=-", "-v"};
  options.error_fd = writer.get();
  KvdProcess kvd(options);
  REQUIRE(kvd.WaitReady());
  const auto client = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(client);
  // Each is told in both logs, by the acceptor and by a poller.
  for (int i = 0; i < 10; ++i) KVD_REQUIRE_OK(Connect(dir.Join("s")));
  KVD_REQUIRE_OK(Call(**client, Opcode::kPut, "k", "v"));
  while (Statistics(**client)["sessions"] != "1") sched_yield();
  kvd.Signal(SIGHUP);
  kvd.Signal(SIGTERM);
  CHECK(kvd.Wait().exit_code == 0);
}

TEST_CASE("kvd: SIGHUP and SIGPIPE do not end it") {
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s")});
  REQUIRE(kvd.WaitReady());
  kvd.Signal(SIGHUP);
  kvd.Signal(SIGPIPE);
  const auto client = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(client);
  CHECK(Call(**client, Opcode::kPing).ok());
}

TEST_CASE("kvd: a SIGHUP that comes while it reads its flags does not end it") {
  TempDir dir;
  const std::string flags = dir.Join("flags");
  REQUIRE(mkfifo(flags.c_str(), 0600) == 0);
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--flagfile=" + flags});
  UniqueFd writer(open(flags.c_str(), O_WRONLY | O_CLOEXEC));  // once kvd has opened it
  REQUIRE(writer.valid());
  kvd.Signal(SIGHUP);
  const std::string text = "--memory=64m\n";
  REQUIRE(write(writer.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  writer.Reset();
  REQUIRE(kvd.WaitReady());
  KVD_REQUIRE_OK(Connect(dir.Join("s")));
}

TEST_CASE("kvd: a second one on the same socket names the first one's pid and changes nothing") {
  TempDir dir;
  const std::string path = dir.Join("s");
  KvdProcess first({"--shm=" + path});
  REQUIRE(first.WaitReady());
  const auto client = Connect(path);
  KVD_REQUIRE_OK(client);
  const Ended second = RunKvd({"--shm=" + path});
  CHECK(second.exit_code == 1);
  CHECK_THAT(second.err, Catch::Contains(absl::StrCat("pid ", first.pid())));
  // --check is for when that has ended.
  const Ended checked = RunKvd({"--shm=" + path, "--check"});
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Catch::Contains(absl::StrCat("running: a kvd (pid ", first.pid(), ")")));
  CHECK(Call(**client, Opcode::kPing).ok());
  KVD_REQUIRE_OK(Connect(path));
}

TEST_CASE("kvd: two that start at once on one socket: exactly one serves") {
  for (int i = 0; i < 10; ++i) {
    TempDir dir;
    KvdProcess a({"--shm=" + dir.Join("s"), "--memory=16m"});
    KvdProcess b({"--shm=" + dir.Join("s"), "--memory=16m"});
    const bool a_ready = a.WaitReady();
    const bool b_ready = b.WaitReady();
    CHECK(a_ready != b_ready);
    KVD_REQUIRE_OK(Connect(dir.Join("s")));
  }
}

TEST_CASE(
    "kvd: its sudden death is noticed at once, and the next one starts over the dead socket") {
  TempDir dir;
  const std::string path = dir.Join("s");
  uint64_t last_incarnation = 0;
  for (int i = 0; i < 10; ++i) {
    KvdProcess kvd({"--shm=" + path, "--memory=16m", "--pollers=2"});
    REQUIRE(kvd.WaitReady());
    const auto client = Connect(path);
    KVD_REQUIRE_OK(client);
    CHECK((*client)->welcome().incarnation != last_incarnation);
    last_incarnation = (*client)->welcome().incarnation;
    KVD_REQUIRE_OK(Call(**client, Opcode::kPut, "k", "v"));
    kvd.Signal(SIGKILL);
    KVD_REQUIRE_CODE((*client)->Wait(DeadlineNs()), kUnavailable);
    KVD_REQUIRE_CODE((*client)->status(), kUnavailable);
    KVD_REQUIRE_CODE(SendRequest(**client, Opcode::kPing), kUnavailable);
    CHECK(kvd.Wait().signal == SIGKILL);
  }
}

TEST_CASE("kvd: a SIGTERM or SIGINT that comes while it gets its memory ends it before it serves") {
  for (const int signal : {SIGTERM, SIGINT}) {
    TempDir dir;
    KvdProcess::Options options;
    options.arguments = {"--shm=" + dir.Join("s"), "--memory=64m"};
    options.pending_signal = signal;
    KvdProcess kvd(options);
    CHECK_FALSE(kvd.WaitReady());
    const Ended ended = kvd.Wait();
    CHECK(ended.exit_code == 0);
    CHECK_THAT(ended.err, Catch::Contains("stopped before it served"));
    CHECK_FALSE(std::filesystem::exists(dir.Join("s.lock")));
  }
}

TEST_CASE(
    "kvd: the next one can be started while the kernel takes the memory of a killed one back") {
  TempDir dir;
  for (int i = 0; i < 3; ++i) {
    KvdProcess killed({"--shm=" + dir.Join("s"), "--memory=256m"});
    REQUIRE(killed.WaitReady());
    killed.Signal(SIGKILL);
    KvdProcess next({"--shm=" + dir.Join("s"), "--memory=16m"});
    const bool ready = next.WaitReady();
    if (ready) next.Signal(SIGTERM);
    INFO(next.Wait().err);
    CHECK(ready);
  }
}

TEST_CASE("kvd: a client sees a dead kvd without a system call, by the lifeline") {
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s")});
  REQUIRE(kvd.WaitReady());
  const auto client = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(client);
  const auto& superblock = *reinterpret_cast<const Superblock*>((*client)->window().data());
  CHECK(LifelineAlive(superblock.lifeline.word));
  kvd.Signal(SIGKILL);
  kvd.Wait();
  CHECK_FALSE(LifelineAlive(superblock.lifeline.word));
}

TEST_CASE("kvd: refuses more than --max_clients by name, and lets others in when some leave") {
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--max_clients=3"});
  REQUIRE(kvd.WaitReady());
  std::vector<std::unique_ptr<ClientChannel>> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Connect(dir.Join("s")).value());
  const auto refused = Connect(dir.Join("s"));
  KVD_REQUIRE_CODE(refused, kUnavailable);
  CHECK_THAT(MessageOf(refused), Catch::Contains("--max_clients=3"));
  CHECK(Statistics(*clients[0])["refused"] == "1");
  clients.pop_back();
  while (!Connect(dir.Join("s")).ok()) sched_yield();
}

TEST_CASE("kvd: the statistics have stable names, and count what was done") {
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--memory=32m", "--pollers=2", "--hugepages=off"});
  REQUIRE(kvd.WaitReady());
  const auto client = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(client);
  for (int i = 0; i < 100; ++i) {
    KVD_REQUIRE_OK(Call(**client, Opcode::kPut, absl::StrCat("k", i), "0123456789"));
  }
  auto statistics = Statistics(**client);
  for (const char* name : {"version",
                           "pid",
                           "uptime_seconds",
                           "incarnation",
                           "transports",
                           "memory_bytes",
                           "page_kind",
                           "page_fallback",
                           "items",
                           "user_bytes",
                           "index_bytes",
                           "heap_bytes",
                           "free_bytes",
                           "largest_free_run_bytes",
                           "local_items",
                           "buckets",
                           "splits",
                           "merges",
                           "index_bytes_given_back",
                           "overflow_headers",
                           "sessions",
                           "sessions_total",
                           "requests_ping",
                           "requests_get",
                           "requests_put",
                           "requests_delete",
                           "requests_exists",
                           "requests_stat",
                           "requests_release",
                           "refused",
                           "malformed",
                           "cpu_user_us",
                           "cpu_system_us"}) {
    INFO(name);
    CHECK(statistics.count(name) == 1);
  }
  CHECK(statistics["pid"] == absl::StrCat(kvd.pid()));
  CHECK(statistics["items"] == "100");
  CHECK(statistics["requests_put"] == "100");
  CHECK(statistics["user_bytes"] == absl::StrCat(100 * 10 + 10 * 2 + 90 * 3));
  CHECK(statistics["transports"] == "shm");
  CHECK(statistics["incarnation"] == absl::StrCat((*client)->welcome().incarnation));
}

TEST_CASE("kvd: without descriptors it refuses with the reason, serves on, and recovers") {
  TempDir dir;
  KvdProcess kvd(KvdProcess::Options{{"--shm=" + dir.Join("s"), "--memory=16m"}, {}, 40});
  REQUIRE(kvd.WaitReady());
  const auto first = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(first);
  std::vector<std::unique_ptr<ClientChannel>> clients;
  absl::Status refused;
  while (refused.ok() && clients.size() < 100) {
    auto client = Connect(dir.Join("s"));
    refused = client.status();
    if (client.ok()) clients.push_back(*std::move(client));
  }
  INFO(refused);
  CHECK_FALSE(refused.ok());
  CHECK(clients.size() > 5);
  CHECK(Call(**first, Opcode::kPing, {}, "still").value() == "still");
  clients.clear();
  while (!Connect(dir.Join("s")).ok()) sched_yield();
  CHECK(Call(**first, Opcode::kPing, {}, "still").value() == "still");
}

TEST_CASE("kvd: after a storm of clients that come, write and die, no descriptor is left") {
  TempDir dir;
  Random random(Seed());
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--pollers=2"});
  REQUIRE(kvd.WaitReady());
  auto first = Connect(dir.Join("s")).value();
  const uint64_t before = DescriptorsOf(kvd.pid());
  for (int i = 0; i < 500; ++i) {
    if (random.OneIn(3)) {
      RawShmClient silent(dir.Join("s"));
      continue;
    }
    auto client = Connect(dir.Join("s"));
    KVD_REQUIRE_OK(client);
    if (random.OneIn(2)) KVD_REQUIRE_OK((*client)->Allocate(100'000));
    if (random.OneIn(2)) KVD_REQUIRE_OK(SendRequest(**client, Opcode::kPut, "k", "v"));
    if (random.OneIn(2)) KVD_REQUIRE_OK(Call(**client, Opcode::kPing));
  }
  while (Statistics(*first)["sessions"] != "1") sched_yield();
  // The handshakes that nobody finished go within their two seconds.
  while (DescriptorsOf(kvd.pid()) > before) KVD_REQUIRE_OK(Call(*first, Opcode::kPing));
  CHECK(Statistics(*first)["malformed"] == "0");
}

TEST_CASE("kvd: hostile clients of every kind end alone") {
  TempDir dir;
  Random random(Seed());
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--memory=16m", "--pollers=2"});
  REQUIRE(kvd.WaitReady());
  const auto honest = Connect(dir.Join("s"));
  KVD_REQUIRE_OK(honest);
  for (int i = 0; i < 300; ++i) {
    if (i % 10 == 0) KVD_REQUIRE_OK(Call(**honest, Opcode::kPut, absl::StrCat(i), "v"));
    RawShmClient hostile(dir.Join("s"));
    if (random.OneIn(10)) {
      hostile.SendObject(random.Next());
      continue;
    }
    Hello hello = MakeHello();
    // Not that of the honest one: a write in a later session of its would end what it may write.
    hello.client_id = 2;
    REQUIRE(hostile.Join(hello).has_value());
    // Frames that are nearly right, then a step too far.
    for (uint32_t slot = 0; slot < random.Uniform(8); ++slot) {
      RequestHeader header{};
      header.opcode = static_cast<uint8_t>(random.Uniform(9));
      header.flags = static_cast<uint8_t>(random.OneIn(3) ? random.Next() : 0);
      header.request_id = random.Uniform(3);
      header.key_len = static_cast<uint16_t>(random.Uniform(100));
      header.value_len = random.OneIn(3) ? random.Next() : random.Uniform(100);
      header.pull_address = random.Next();
      header.pull_key = static_cast<uint32_t>(random.Uniform(3));
      std::memcpy(hostile.slot(slot) + sizeof(SlotHeader), &header, sizeof(header));
      hostile.Publish(slot, 1, static_cast<uint32_t>(64 + random.Uniform(200)));
    }
    switch (random.Uniform(4)) {
      case 0:
        hostile.Publish(random.Uniform(16), static_cast<uint32_t>(random.Next()),
                        static_cast<uint32_t>(random.Next()));
        break;
      case 1:
        hostile.SendObject(random.Next());
        break;
      case 2:
        hostile.SendObject(kDoorbell);
        break;
      default:
        break;
    }
  }
  CHECK(Call(**honest, Opcode::kGet, "0").value() == "v");
  while (Statistics(**honest)["sessions"] != "1") sched_yield();
  kvd.Signal(SIGTERM);
  const Ended ended = kvd.Wait();
  INFO(ended.err);
  CHECK(ended.exit_code == 0);
}

TEST_CASE("kvd: an idle one, with many clients, makes no progress of its own: it sleeps") {
  // CPU time cannot be judged without a clock, so this counts sleeps: a poller that is asleep does
  // not count on.
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--poll=event"});
  REQUIRE(kvd.WaitReady());
  std::vector<std::unique_ptr<ClientChannel>> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(Connect(dir.Join("s")).value());
  const auto sleeps = [&] { return std::stoull(Statistics(*clients[0])["poller_sleeps"]); };
  const uint64_t before = sleeps();
  const uint64_t after = sleeps();
  CHECK(after - before <= 4);
}

TEST_CASE("kvd: that it was stopped is in its statistics, also if it slept at the time") {
  TempDir dir;
  const std::string mode = GENERATE("--poll=event", "--poll=busy");
  KvdProcess kvd({"--shm=" + dir.Join("s"), mode});
  REQUIRE(kvd.WaitReady());
  const std::unique_ptr<ClientChannel> client = Connect(dir.Join("s")).value();
  const auto longest_us = [&] {
    return std::stoull(Statistics(*client)["poller_longest_stall_us"]);
  };
  const uint64_t before_us = longest_us();
  constexpr int64_t kStopNs = 400'000'000;
  const Clock& clock = RealClock::Get();
  kvd.Signal(SIGSTOP);
  const int64_t until_ns = clock.NowMonotonicNs() + kStopNs;
  while (clock.NowMonotonicNs() < until_ns) sched_yield();
  kvd.Signal(SIGCONT);
  // A nap of 0.1 s is what may pass unseen of it.
  while (longest_us() < 250'000) sched_yield();
  CHECK(longest_us() > before_us);
  CHECK(std::stoull(Statistics(*client)["poller_stalls"]) > 0);
}

}  // namespace kvd::test
