// Every error that ShmClientChannel::Connect and SocketClaim::Take name.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/layout/superblock.h"
#include "common/transport/sealed_memory.h"
#include "common/transport/shm/default_path.h"
#include "common/transport/shm/region_window.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "common/transport/shm/socket_claim.h"
#include "common/transport/shm/unix_socket.h"
#include "tests/conformance/rig.h"
#include "tests/support/temp_dir.h"

namespace kvd::test {
namespace {

absl::Status TryConnect(const std::string& path, int64_t deadline_ns = DeadlineNs()) {
  return ShmClientChannel::Connect(path, MakeHello(), deadline_ns).status();
}

UniqueFd ListenAt(const std::string& path, int backlog) {
  UniqueFd listener = MakeUnixSocket().value();
  const sockaddr_un address = MakeUnixAddress(path).value();
  REQUIRE(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listener.get(), backlog) == 0);
  return listener;
}

// Answers one client with these bytes and descriptors.
std::thread Impostor(const UniqueFd& listener, std::string answer, std::vector<int> fds) {
  return std::thread([&listener, answer = std::move(answer), fds = std::move(fds)] {
    const UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char hello[64];
    if (recv(peer.get(), hello, sizeof(hello), 0) > 0 && !answer.empty()) {
      SendPacket(peer.get(), std::as_bytes(std::span(answer)), fds);
    }
  });
}

// Leaves the test case where this process cannot be another user: not root, or alone in a user
// namespace.
void SkipUnlessOthersExist() {
  if (geteuid() != 0 || seteuid(54321) != 0) KVD_SKIP("needs root, to become another user");
  REQUIRE(seteuid(0) == 0);
}

std::string BytesOf(const Welcome& welcome) {
  return std::string(reinterpret_cast<const char*>(&welcome), sizeof(welcome));
}

}  // namespace

TEST_CASE("ShmServerTransport: the end leaves a socket alone that another has put in its place") {
  TempDir dir;
  const FakeRegion region;
  FakeAdmission admission(region, 4, 4608);
  const std::string path = dir.Join("s");
  ShmServerTransport::Options options;
  options.region_fd = region.fd();
  auto transport = ShmServerTransport::Create(SocketClaim::Take(path).value(), options).value();
  KVD_REQUIRE_OK(transport->Start(admission));
  const bool replaced = GENERATE(true, false);
  UniqueFd other;
  // Kept under another name, so that its inode is not used again.
  if (replaced) {
    REQUIRE(rename(path.c_str(), dir.Join("old").c_str()) == 0);
    other = ListenAt(path, 1);
  }
  transport->StopAccepting();
  CHECK((access(path.c_str(), F_OK) == 0) == replaced);
}

TEST_CASE("Connect: a path that is empty or too long is refused with both lengths") {
  const std::string longest(107, 'x');
  KVD_REQUIRE_CODE(TryConnect(""), kInvalidArgument);
  KVD_REQUIRE_CODE(TryConnect(longest), kUnavailable);
  const absl::Status status = TryConnect(longest + "x");
  KVD_REQUIRE_CODE(status, kInvalidArgument);
  CHECK_THAT(MessageOf(status), Catch::Contains("108 bytes") && Catch::Contains("limit is 107"));
}

TEST_CASE("Connect: where nobody listens it says what to start") {
  TempDir dir;
  const std::string path = dir.Join("kvd.sock");
  absl::Status status = TryConnect(path);
  KVD_REQUIRE_CODE(status, kUnavailable);
  CHECK_THAT(MessageOf(status),
             Catch::Contains("no socket at " + path) && Catch::Contains("kvd --shm=" + path));
  { ListenAt(path, 1); }
  status = TryConnect(path);
  KVD_REQUIRE_CODE(status, kUnavailable);
  CHECK_THAT(MessageOf(status), Catch::Contains("nobody listens at " + path));
  std::ofstream(dir.Join("file")) << "x";
  for (const std::string& no_socket : {dir.Join("file"), dir.Join("file/kvd.sock"), dir.path()}) {
    status = TryConnect(no_socket);
    KVD_REQUIRE_CODE(status, kUnavailable);
    CHECK_THAT(MessageOf(status), Catch::StartsWith(no_socket + " is not a socket of kvd;") &&
                                      !Catch::Contains("start"));
  }
}

TEST_CASE("Connect: where a kvd is starting it says to wait, and not to start one") {
  if (access("/proc/locks", R_OK) != 0) KVD_SKIP("this kernel shows no locks");
  TempDir dir;
  const std::string path = dir.Join("kvd.sock");
  {
    const SocketClaim claim = SocketClaim::Take(path).value();
    const absl::Status status = TryConnect(path);
    KVD_REQUIRE_CODE(status, kUnavailable);
    CHECK(MessageOf(status) == absl::StrCat("nobody listens at ", path, " yet: a kvd (pid ",
                                            getpid(), ") is starting there; wait for it"));
  }
  // Left behind by one that was killed.
  std::ofstream(path + ".lock") << getpid() << "\n";
  CHECK_THAT(MessageOf(TryConnect(path)), Catch::StartsWith("no socket at " + path));
}

TEST_CASE("Connect: a socket that may not be opened is PermissionDenied") {
  SkipUnlessOthersExist();
  TempDir dir;
  const std::string path = dir.Join("kvd.sock");
  const UniqueFd listener = ListenAt(path, 1);
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(seteuid(65534) == 0);
  const absl::Status status = TryConnect(path);
  REQUIRE(seteuid(0) == 0);
  KVD_REQUIRE_CODE(status, kPermissionDenied);
  CHECK_THAT(MessageOf(status), Catch::Contains(path));
}

TEST_CASE("Connect: a server that does not answer, or does not even accept, is a deadline") {
  TempDir dir;
  const std::string path = dir.Join("kvd.sock");
  const UniqueFd listener = ListenAt(path, 0);
  const int64_t soon = RealClock::Get().NowMonotonicNs() + 20'000'000;
  KVD_REQUIRE_CODE(TryConnect(path, soon), kDeadlineExceeded);  // queued, never answered
  KVD_REQUIRE_CODE(TryConnect(path, soon), kDeadlineExceeded);
  KVD_REQUIRE_CODE(TryConnect(path, soon), kDeadlineExceeded);  // no room in the queue
}

TEST_CASE("Connect: an answer that is no welcome is DataLoss, none at all Unavailable") {
  TempDir dir;
  const FakeRegion region;
  const UniqueFd segment =
      MakeSealedMemory({.bytes = SessionLayout::Of(4, 4608).segment_bytes()}).value();
  const UniqueFd small = MakeSealedMemory({.bytes = 4096}).value();
  const Welcome good = region.MakeWelcome(1, 4, 4608);
  Welcome other_incarnation = good;
  other_incarnation.incarnation ^= 1;
  Welcome other_size = good;
  other_size.region_bytes += 4096;
  Welcome many_credits = good;
  many_credits.credits = kCreditsMax + 1;
  struct Case {
    std::string answer;
    std::vector<int> fds;
    absl::StatusCode code;
    const char* text;
  };
  const Case cases[] = {
      {"", {}, absl::StatusCode::kUnavailable, "closed the connection"},
      {"nonsense that is long enough", {}, absl::StatusCode::kDataLoss, "magic"},
      {BytesOf(good), {}, absl::StatusCode::kDataLoss, "0 descriptors"},
      {BytesOf(good), {region.fd()}, absl::StatusCode::kDataLoss, "1 descriptors"},
      {BytesOf(good), {region.fd(), small.get()}, absl::StatusCode::kDataLoss, "session"},
      {BytesOf(good), {small.get(), segment.get()}, absl::StatusCode::kDataLoss, "region"},
      {BytesOf(other_incarnation),
       {region.fd(), segment.get()},
       absl::StatusCode::kDataLoss,
       "not the one"},
      {BytesOf(other_size), {region.fd(), segment.get()}, absl::StatusCode::kDataLoss, "region"},
      {BytesOf(many_credits), {region.fd(), segment.get()}, absl::StatusCode::kDataLoss, "credits"},
      {BytesOf(good), {region.fd(), segment.get()}, absl::StatusCode::kOk, ""},
  };
  int number = 0;
  for (const Case& c : cases) {
    const std::string path = dir.Join(std::to_string(number++));
    const UniqueFd listener = ListenAt(path, 1);
    std::thread impostor = Impostor(listener, c.answer, c.fds);
    const absl::Status status = TryConnect(path);
    impostor.join();
    INFO(status);
    CHECK(status.code() == c.code);
    CHECK_THAT(MessageOf(status), Catch::Contains(c.text));
  }
}

TEST_CASE("Region window: damage in the superblock is DataLoss") {
  FakeRegion region;
  const Welcome welcome = region.MakeWelcome(1, 4, 4608);
  const auto map = [&] {
    return MapRegionWindow(UniqueFd(fcntl(region.fd(), F_DUPFD_CLOEXEC, 0)), welcome).status();
  };
  KVD_REQUIRE_OK(map());
  auto& identity = reinterpret_cast<Superblock*>(region.base())->identity;
  const RegionIdentity whole = identity;
  const auto seal = [&] {
    identity.checksum = Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic);
  };
  identity.magic ^= 1;
  KVD_REQUIRE_CODE(map(), kDataLoss);
  identity = whole;
  identity.created_unix_us ^= 1;
  KVD_REQUIRE_CODE(map(), kDataLoss);
  identity = whole;
  identity.layout_version = kLayoutVersion + 1;
  seal();
  KVD_REQUIRE_CODE(map(), kDataLoss);
  identity = whole;
  identity.feature_bits = 1;
  seal();
  KVD_REQUIRE_CODE(map(), kDataLoss);
  identity = whole;
  KVD_REQUIRE_OK(map());
}

TEST_CASE("Region window: a client cannot get write access to the region") {
  FakeRegion region;
  Rig rig;
  const auto client = rig.Connect();
  const UniqueFd fd(fcntl(rig.region.fd(), F_DUPFD_CLOEXEC, 0));
  CHECK(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0) == MAP_FAILED);
  CHECK(pwrite(fd.get(), "x", 1, 0) == -1);
  CHECK(mprotect(const_cast<std::byte*>(client->window().data()), 4096, PROT_READ | PROT_WRITE) ==
        -1);
}

TEST_CASE("Socket claim: one holder at a time, and the other learns its pid") {
  TempDir dir;
  const std::string path = dir.Join("kvd.sock");
  auto first = SocketClaim::Take(path);
  KVD_REQUIRE_OK(first);
  const auto second = SocketClaim::Take(path);
  KVD_REQUIRE_CODE(second, kAlreadyExists);
  CHECK_THAT(MessageOf(second), Catch::Contains(absl::StrCat("pid ", getpid())));
  first = absl::UnknownError("given up");
  KVD_REQUIRE_OK(SocketClaim::Take(path));
}

TEST_CASE("Socket claim: a dead socket is removed, a living one and other files are left alone") {
  TempDir dir;
  const std::string path = dir.Join("kvd.sock");
  {
    const UniqueFd living = ListenAt(path, 1);
    const auto claim = SocketClaim::Take(path);
    KVD_REQUIRE_CODE(claim, kAlreadyExists);
    CHECK_THAT(MessageOf(claim), Catch::Contains(absl::StrCat("pid ", getpid())));
  }
  REQUIRE(access(path.c_str(), F_OK) == 0);
  KVD_REQUIRE_OK(SocketClaim::Take(path));
  CHECK(access(path.c_str(), F_OK) != 0);
  std::ofstream(path) << "precious";
  KVD_REQUIRE_CODE(SocketClaim::Take(path), kFailedPrecondition);
  CHECK(access(path.c_str(), F_OK) == 0);
}

TEST_CASE("Socket claim: bad directories are named") {
  TempDir dir;
  auto claim = SocketClaim::Take(dir.Join("missing/kvd.sock"));
  KVD_REQUIRE_CODE(claim, kInvalidArgument);
  CHECK_THAT(MessageOf(claim), Catch::Contains(dir.Join("missing")));
  KVD_REQUIRE_CODE(SocketClaim::Take(std::string(200, 'x')), kInvalidArgument);
}

TEST_CASE("Socket claim: a directory that may not be written is PermissionDenied") {
  SkipUnlessOthersExist();
  TempDir dir;
  REQUIRE(chmod(dir.path().c_str(), 0755) == 0);
  REQUIRE(seteuid(65534) == 0);
  auto claim = SocketClaim::Take(dir.Join("kvd.sock"));
  REQUIRE(seteuid(0) == 0);
  KVD_REQUIRE_CODE(claim, kPermissionDenied);
  CHECK_THAT(MessageOf(claim), Catch::Contains("not writable"));
}

TEST_CASE("Default socket path: by user and environment") {
  CHECK(DefaultSocketPathOf(0, "/run/user/0") == "/run/kvd/kvd.sock");
  CHECK(DefaultSocketPathOf(1000, "/run/user/1000") == "/run/user/1000/kvd.sock");
  CHECK(DefaultSocketPathOf(1000, nullptr) == "/tmp/kvd-1000/kvd.sock");
  CHECK(DefaultSocketPathOf(1000, "") == "/tmp/kvd-1000/kvd.sock");
  CHECK(DefaultSocketPathOf(1000, "relative") == "/tmp/kvd-1000/kvd.sock");
}

TEST_CASE("Default socket path: a directory in /tmp is believed only if it is the caller's own") {
  SkipUnlessOthersExist();
  const char* before = std::getenv("XDG_RUNTIME_DIR");
  const std::string saved = before == nullptr ? "" : before;
  unsetenv("XDG_RUNTIME_DIR");
  constexpr uid_t kUser = 54321;
  const std::string directory = "/tmp/kvd-54321";
  const std::string path = directory + "/kvd.sock";
  rmdir(directory.c_str());
  REQUIRE(seteuid(kUser) == 0);
  const absl::Status made = PrepareDefaultDirectory(path);
  REQUIRE(seteuid(0) == 0);
  KVD_REQUIRE_OK(made);
  REQUIRE(chown(directory.c_str(), 0, 0) == 0);
  REQUIRE(seteuid(kUser) == 0);
  const absl::Status foreign = PrepareDefaultDirectory(path);
  const absl::Status connect = TryConnect(path);
  REQUIRE(seteuid(0) == 0);
  rmdir(directory.c_str());
  if (before != nullptr) setenv("XDG_RUNTIME_DIR", saved.c_str(), 1);
  KVD_REQUIRE_CODE(foreign, kPermissionDenied);
  KVD_REQUIRE_CODE(connect, kPermissionDenied);
}

}  // namespace kvd::test
