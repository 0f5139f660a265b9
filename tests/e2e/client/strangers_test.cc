// Users of one host against each other: one who stands between a client and kvd, and one who looks
// like kvd's own user because the user namespace does not tell them apart. Has to become other
// users, so it runs as root.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"
#include "common/transport/shm/unix_socket.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

constexpr uid_t kVictim = 6666;
constexpr uid_t kBetween = 5555;
const std::string kKey = "key app read-write 00112233445566778899aabbccddeeff\n";

void NeedRoot() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, length = 0;
  map >> inside >> outside >> length;
  if (geteuid() != 0 || length < 65536) KVD_SKIP("has to be root, to become other users");
}

// What `what` says as that user, in a process of its own.
class Other {
 public:
  Other(uid_t user, const std::function<std::string()>& what) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    said_.Reset(ends[0]);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) {
      close(ends[1]);
      return;
    }
    std::string said = "cannot become another user";
    if (setgroups(0, nullptr) == 0 && setgid(user) == 0 && setuid(user) == 0) said = what();
    [[maybe_unused]] const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(0);
  }
  std::string Said() {
    std::string said;
    char piece[512];
    for (ssize_t got; (got = read(said_.get(), piece, sizeof(piece))) > 0;)
      said.append(piece, static_cast<size_t>(got));
    waitpid(pid_, nullptr, 0);
    return said;
  }

 private:
  UniqueFd said_;
  pid_t pid_ = -1;
};

std::string FileOf(const TempDir& dir, const std::string& name, uid_t user) {
  const std::string path = dir.Join(name);
  std::ofstream(path) << kKey;
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  REQUIRE(chown(path.c_str(), user, user) == 0);
  return path;
}

std::string ConnectAs(uid_t user, const std::string& socket, const std::string& key_file) {
  return Other(user,
               [&] {
                 ClientOptions options;
                 options.key_file = key_file;
                 const auto client = Client::Connect("shm:" + socket, options);
                 return client.ok() ? std::string("admitted") : MessageOf(client.status());
               })
      .Said();
}

UniqueFd Dial(const std::string& path) {
  UniqueFd socket = MakeUnixSocket().value();
  const sockaddr_un address = MakeUnixAddress(path).value();
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket.get(), to, sizeof(address)) != 0) socket.Reset();
  return socket;
}

// Waits for a packet and passes it on, with its descriptors. How many it had; -1: the end.
int Pass(int from, int to) {
  std::byte bytes[512];
  char nothing;
  if (recv(from, &nothing, 1, MSG_PEEK) <= 0) return -1;
  Packet packet;
  if (ReceivePacket(from, bytes, packet) != 0 || packet.bytes == 0) return -1;
  std::vector<int> fds;
  for (size_t i = 0; i < packet.fd_count && i < packet.fds.size(); ++i)
    fds.push_back(packet.fds[i].get());
  SendPacket(to, std::span(bytes).first(packet.bytes), fds);
  return static_cast<int>(packet.fd_count);
}

// Passes on a whole handshake of one client; what it learned.
std::string Relay(int listener, const std::string& kvd) {
  const UniqueFd client(accept(listener, nullptr, nullptr));
  const UniqueFd server = Dial(kvd);
  if (!server.valid()) return "no way to kvd";
  int fds = 0;
  for (int i = 0; i < 2; ++i) {  // Hello and Challenge, ChallengeAnswer and Welcome
    if (Pass(client.get(), server.get()) < 0) return "the client ended it";
    const int got = Pass(server.get(), client.get());
    if (got < 0) return "kvd ended it";
    fds += got;
  }
  return "passed on " + std::to_string(fds) + " descriptors";
}

}  // namespace

TEST_CASE(
    "Strangers: one who passes a handshake on gets no descriptor, and the client does not go on") {
  NeedRoot();
  const TempDir dir;
  REQUIRE(chmod(dir.path().c_str(), 0777) == 0);
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(
      getenv("KVD"), {"--memory=64m", "--shm_mode=0666", "--keys=" + FileOf(dir, "kvd.keys", 0)}));
  REQUIRE(chmod(kvd.socket_path().substr(0, kvd.socket_path().rfind('/')).c_str(), 0755) == 0);
  const std::string keys = FileOf(dir, "client.keys", kVictim);
  CHECK(ConnectAs(kVictim, kvd.socket_path(), keys) == "admitted");

  const std::string path = dir.Join("between");
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  Other between(kBetween, [&] {
    const UniqueFd listener = MakeUnixSocket().value();
    const sockaddr_un address = MakeUnixAddress(path).value();
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    if (bind(listener.get(), at, sizeof(address)) != 0 || chmod(path.c_str(), 0666) != 0 ||
        listen(listener.get(), 1) != 0 || write(ready[1], "x", 1) != 1) {
      return std::string("cannot listen");
    }
    return Relay(listener.get(), kvd.socket_path());
  });
  char listens;
  REQUIRE(read(ready[0], &listens, 1) == 1);
  const std::string refused = ConnectAs(kVictim, path, keys);
  CHECK_THAT(refused, Contains("unknown key or wrong secret"));
  CHECK(between.Said() == "passed on 0 descriptors");
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("Strangers: sessions of others leave descriptors for administrators") {
  NeedRoot();
  const TempDir dir;
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  const std::string keys = FileOf(dir, "kvd.keys", 0);
  std::ofstream(keys, std::ios::app) << "user " << kBetween << " read\n";
  // kvd takes as many as it may have, and a limit that was lowered cannot be raised again.
  const std::string program = dir.Join("kvd");
  std::ofstream(program) << "#!/bin/sh\nulimit -n 96\nexec "
                         << std::filesystem::absolute(getenv("KVD")) << " \"$@\"\n";
  REQUIRE(chmod(program.c_str(), 0700) == 0);
  KvdProcess kvd;
  const absl::Status started =
      kvd.Start(program, {"--memory=64m", "--shm_mode=0666", "--keys=" + keys});
  KVD_REQUIRE_OK(started);
  REQUIRE(chmod(kvd.socket_path().substr(0, kvd.socket_path().rfind('/')).c_str(), 0755) == 0);
  int full[2];
  int go[2];
  REQUIRE((pipe(full) == 0 && pipe(go) == 0));
  Other greedy(kBetween, [&] {
    std::vector<std::unique_ptr<Client>> clients;
    std::string last;
    while (clients.size() < 200) {
      auto client = Client::Connect(kvd.target());
      if (!client.ok()) {
        last = MessageOf(client.status());
        break;
      }
      clients.push_back(*std::move(client));
    }
    char end;
    if (write(full[1], "x", 1) != 1 || read(go[0], &end, 1) != 1) return std::string("no pipe");
    return last;
  });
  char is_full;
  REQUIRE(read(full[0], &is_full, 1) == 1);
  std::vector<std::unique_ptr<Client>> administrators;
  for (int i = 0; i < 2; ++i) {
    auto client = Client::Connect(kvd.target());
    KVD_REQUIRE_OK(client);
    KVD_REQUIRE_OK((*client)->Sessions());
    administrators.push_back(*std::move(client));
  }
  REQUIRE(write(go[1], "x", 1) == 1);
  CHECK_THAT(greedy.Said(), Contains("no descriptors left"));
  for (const int fd : {full[0], full[1], go[0], go[1]}) close(fd);
}

TEST_CASE("Strangers: where kvd is nobody of a user namespace, nobody of outside is its own user") {
  NeedRoot();
  constexpr uid_t kOutside = 7001;  // as whom it runs, seen from outside
  const TempDir dir;
  REQUIRE(chown(dir.path().c_str(), kOutside, kOutside) == 0);
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  const std::string keys = "--keys=" + FileOf(dir, "kvd.keys", kOutside);
  const std::string socket = dir.Join("s");
  const std::string shm = "--shm=" + socket;
  int apart[2];
  int mapped[2];
  REQUIRE((pipe(apart) == 0 && pipe(mapped) == 0));
  const UniqueFd kvd(open(getenv("KVD"), O_RDONLY | O_CLOEXEC));
  REQUIRE(kvd.valid());
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    char go = 0;
    if (setgroups(0, nullptr) != 0 || setgid(kOutside) != 0 || setuid(kOutside) != 0) _exit(1);
    prctl(PR_SET_DUMPABLE, 1);
    const char* const outcome = unshare(CLONE_NEWUSER) == 0 ? "y" : "n";
    if (write(apart[1], outcome, 1) != 1 || read(mapped[0], &go, 1) != 1) _exit(1);
    if (freopen(dir.Join("log").c_str(), "w", stderr) == nullptr) _exit(1);
    // By its descriptor: the way to it may be closed to that user.
    const char* const arguments[] = {"kvd", "--memory=64m", "--shm_mode=0666", shm.c_str(),
                                     keys.c_str(), nullptr};
    fexecve(kvd.get(), const_cast<char* const*>(arguments), environ);
    _exit(1);
  }
  char outcome = 0;
  REQUIRE(read(apart[0], &outcome, 1) == 1);
  const auto write_map = [&](const char* name, const char* text) {
    std::ofstream("/proc/" + std::to_string(pid) + "/" + name) << text;
  };
  write_map("setgroups", "deny");
  write_map("uid_map", "65534 7001 1");
  write_map("gid_map", "65534 7001 1");
  REQUIRE(write(mapped[1], "x", 1) == 1);
  bool ended = false;
  while (!ended && !Dial(socket).valid()) ended = waitpid(pid, nullptr, WNOHANG) == pid;
  const std::string stranger =
      ended ? "" : Other(kBetween, [&] {
                     const auto client = Client::Connect("shm:" + socket);
                     return client.ok() ? std::string("admitted") : MessageOf(client.status());
                   }).Said();
  std::string key;
  if (!ended) {
    key = ConnectAs(kVictim, socket, FileOf(dir, "client.keys", kVictim));
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
  }
  for (const int fd : {apart[0], apart[1], mapped[0], mapped[1]}) close(fd);
  if (outcome == 'n') KVD_SKIP("no user namespaces here");
  REQUIRE_FALSE(ended);
  CHECK_THAT(stranger, Contains("no rule for this user"));
  // It has the right key, but kvd cannot know that nobody stands between.
  CHECK_THAT(key, Contains("another user namespace"));
  std::ifstream log(dir.Join("log"));
  const std::string said((std::istreambuf_iterator<char>(log)), {});
  CHECK_THAT(said, Contains("kvd runs as user 65534 in a user namespace"));
}

}  // namespace kvd::test
