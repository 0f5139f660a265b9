#include "server/store/region.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/machine_memory.h"
#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"
#include "common/base/units.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using Catch::Matchers::Contains;

RegionOptions Options(uint64_t memory_bytes = 8 * kMiB) {
  return {.memory_bytes = memory_bytes, .hugepages = HugepagePolicy::kOff, .progress = {}};
}

TEST_CASE("Region: the superblock says what the geometry says, and verifies") {
  RegionOptions options = Options();
  options.shard_count = 3;
  auto region = Region::Create(options);
  KVD_REQUIRE_OK(region);
  const RegionIdentity& identity = (*region)->superblock().identity;
  const Geometry& geometry = (*region)->geometry();
  REQUIRE(identity.magic == kSuperblockMagic);
  REQUIRE(identity.layout_version == kLayoutVersion);
  REQUIRE(identity.feature_bits == 0);
  REQUIRE(identity.incarnation == geometry.incarnation);
  REQUIRE(identity.incarnation != 0);
  REQUIRE(identity.region_bytes == 8 * kMiB);
  REQUIRE(identity.bucket_bytes == kBucketBytesDefault);
  REQUIRE(identity.shard_count == 3);
  REQUIRE(identity.directory_offset == geometry.directory_offset);
  REQUIRE(identity.directory_entries == geometry.directory_entries);
  REQUIRE(identity.segment_bytes == kSegmentBytes);
  REQUIRE(identity.created_unix_us != 0);
  REQUIRE(identity.checksum ==
          Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic));
  KVD_REQUIRE_OK(CheckGeometry(geometry));
}

TEST_CASE("Region: two of them have two incarnations, and a wanted one is taken") {
  auto first = Region::Create(Options());
  auto second = Region::Create(Options());
  REQUIRE((*first)->geometry().incarnation != (*second)->geometry().incarnation);
  RegionOptions options = Options();
  options.incarnation = 42;
  REQUIRE((*Region::Create(options))->geometry().incarnation == 42);
}

TEST_CASE("Region: progress is reported up to the whole") {
  RegionOptions options = Options(40 * kMiB);
  options.prefault_threads = 2;
  std::vector<std::pair<uint64_t, uint64_t>> calls;
  options.progress = [&](uint64_t done, uint64_t total) { calls.emplace_back(done, total); };
  KVD_REQUIRE_OK(Region::Create(options));
  REQUIRE_FALSE(calls.empty());
  REQUIRE(calls.back() == std::pair(40 * kMiB, 40 * kMiB));
  for (size_t i = 1; i < calls.size(); ++i) REQUIRE(calls[i - 1].first < calls[i].first);
}

TEST_CASE("Region: getting its memory can be given up, and no other kind of page is tried then") {
  for (const HugepagePolicy hugepages :
       {HugepagePolicy::kPrefer, HugepagePolicy::kRequire, HugepagePolicy::kOff}) {
    RegionOptions options = Options(64 * kMiB);
    options.hugepages = hugepages;
    options.prefault_threads = 1;
    uint64_t most = 0;
    options.progress = [&](uint64_t done, uint64_t) { most = std::max(most, done); };
    int asked = 0;
    options.cancelled = [&] { return ++asked > 2; };
    const auto region = Region::Create(options);
    // Where there are no hugepages at all none is tried.
    if (hugepages == HugepagePolicy::kRequire && asked == 0) continue;
    KVD_REQUIRE_CODE(region, kCancelled);
    CHECK(most <= 32 * kMiB);
    CHECK(asked == 3);
  }
}

TEST_CASE("Region: who receives the descriptor can read and do nothing else") {
  auto region = Region::Create(Options());
  KVD_REQUIRE_OK(region);
  const int fd = (*region)->fd();
  const size_t bytes = (*region)->bytes();

  KVD_REQUIRE_CODE(
      MappedMemory::Map({.fd = fd, .length_bytes = bytes, .protection = PROT_READ | PROT_WRITE}),
      kPermissionDenied);
  REQUIRE(::write(fd, "x", 1) == -1);
  REQUIRE(errno == EPERM);
  REQUIRE(::pwrite(fd, "x", 1, 4096) == -1);
  REQUIRE(errno == EPERM);
  REQUIRE(::ftruncate(fd, 0) == -1);
  REQUIRE(::ftruncate(fd, static_cast<off_t>(2 * bytes)) == -1);
  REQUIRE(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == -1);
  REQUIRE(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == -1);
  // Opened anew by its name in /proc it is the same sealed file.
  const UniqueFd again(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR));
  if (again.valid()) REQUIRE(::write(again.get(), "x", 1) == -1);

  auto readable = MappedMemory::Map({.fd = fd, .length_bytes = bytes});
  KVD_REQUIRE_OK(readable);
  REQUIRE(::mprotect(readable->base(), bytes, PROT_READ | PROT_WRITE) == -1);
  REQUIRE(errno == EACCES);

  // The owner's own writes go on and are seen.
  std::byte* const at = (*region)->At(RegionOffset{5 * kMiB});
  std::memcpy(at, "kvd", 3);
  REQUIRE(std::memcmp(readable->base() + 5 * kMiB, "kvd", 3) == 0);
}

TEST_CASE("Region: memory below the minimum is refused with the minimum") {
  for (const uint32_t shards : {1u, 8u}) {
    RegionOptions options = Options(Region::MinimumBytes(shards) - 1);
    options.shard_count = shards;
    const auto region = Region::Create(options);
    KVD_REQUIRE_CODE(region, kInvalidArgument);
    REQUIRE_THAT(test::MessageOf(region),
                 Contains("minimum of " + FormatBytes(Region::MinimumBytes(shards))));
    options.memory_bytes = Region::MinimumBytes(shards);
    KVD_REQUIRE_OK(Region::Create(options));
  }
}

TEST_CASE(
    "Region: memory beyond the machine's is refused with what there is, before any is taken") {
  const MachineMemory machine = ReadMachineMemory();
  const auto whole = Region::Create(Options(64 * kTiB / 16));
  KVD_REQUIRE_CODE(whole, kInvalidArgument);
  REQUIRE_THAT(test::MessageOf(whole),
               Contains("4 TiB") && Contains(FormatBytes(machine.total_bytes)));
  const auto available = Region::Create(Options(machine.total_bytes / kPageBytes * kPageBytes));
  KVD_REQUIRE_CODE(available, kInvalidArgument);
  REQUIRE_THAT(test::MessageOf(available), Contains("more than this machine can give"));
}

TEST_CASE("Region: numbers outside of their limits are refused") {
  RegionOptions options = Options();
  options.shard_count = 0;
  KVD_REQUIRE_CODE(Region::Create(options), kInvalidArgument);
  options.shard_count = kShardsMax + 1;
  KVD_REQUIRE_CODE(Region::Create(options), kInvalidArgument);
  options = Options();
  options.bucket_bytes = 1000;
  KVD_REQUIRE_CODE(Region::Create(options), kInvalidArgument);
}

TEST_CASE("Region: hugepages that are required and not there are refused with counts and remedy") {
  constexpr uint64_t kMemory = 64 * kMiB;
  if (FreeHugepages(2 * kMiB) >= 32) KVD_SKIP("this machine has hugepages free");
  RegionOptions options = Options(kMemory);
  options.hugepages = HugepagePolicy::kRequire;
  const auto region = Region::Create(options);
  KVD_REQUIRE_CODE(region, kResourceExhausted);
  REQUIRE_THAT(
      test::MessageOf(region),
      Contains("need 32 x 2 MiB hugepages, free " + std::to_string(FreeHugepages(2 * kMiB))) &&
          Contains("sysctl vm.nr_hugepages=32 or --hugepages=off"));
}

TEST_CASE("Region: hugepages that are preferred and not there are replaced, with a reason") {
  if (FreeHugepages(2 * kMiB) >= 32) KVD_SKIP("this machine has hugepages free");
  RegionOptions options = Options(64 * kMiB);
  options.hugepages = HugepagePolicy::kPrefer;
  auto region = Region::Create(options);
  KVD_REQUIRE_OK(region);
  const bool transparent = TransparentHugepagesForSharedMemory();
  REQUIRE((*region)->page_kind() == (transparent ? PageKind::kTransparent : PageKind::kSmall));
  REQUIRE_THAT((*region)->page_fallback(), Contains("2 MiB hugepages free: need 32, free "));
  REQUIRE((*region)->page_fallback().size() <= 60);
}

TEST_CASE("Region: hugepages are used where they are") {
  if (FreeHugepages(2 * kMiB) < 4) KVD_SKIP("no hugepages free: sysctl vm.nr_hugepages=4");
  RegionOptions options = Options(8 * kMiB);
  options.hugepages = HugepagePolicy::kRequire;
  auto region = Region::Create(options);
  KVD_REQUIRE_OK(region);
  REQUIRE((*region)->page_kind() == PageKind::kHuge2MiB);
  REQUIRE((*region)->page_fallback().empty());
}

TEST_CASE("Region: without hugepages asked for there is nothing to excuse") {
  auto region = Region::Create(Options());
  REQUIRE((*region)->page_kind() == PageKind::kSmall);
  REQUIRE((*region)->page_fallback().empty());
}

TEST_CASE("Region: nothing is left behind by a region that went, or could not be made") {
  const auto descriptors = [] {
    int open = 0;
    for (int fd = 0; fd < 256; ++fd) open += ::fcntl(fd, F_GETFD) != -1 ? 1 : 0;
    return open;
  };
  const int before = descriptors();
  Region::Create(Options()).value().reset();
  RegionOptions options = Options(64 * kMiB);
  options.hugepages = HugepagePolicy::kRequire;
  if (FreeHugepages(2 * kMiB) < 32) KVD_REQUIRE_CODE(Region::Create(options), kResourceExhausted);
  REQUIRE(descriptors() == before);
}

uint32_t LifelineWord(const std::byte* base) {
  return __atomic_load_n(&reinterpret_cast<const Superblock*>(base)->lifeline.word,
                         __ATOMIC_ACQUIRE);
}

TEST_CASE("Lifeline: alive from its start until the region goes") {
  auto region = Region::Create(Options());
  auto readable = MappedMemory::Map({.fd = (*region)->fd(), .length_bytes = (*region)->bytes()});
  REQUIRE_FALSE(LifelineAlive(LifelineWord(readable->base())));
  KVD_REQUIRE_OK((*region)->StartLifeline());
  REQUIRE(LifelineAlive(LifelineWord(readable->base())));
  region->reset();
  REQUIRE_FALSE(LifelineAlive(LifelineWord(readable->base())));
}

// Passes one descriptor over a socket pair.
void SendDescriptor(int socket, int fd) {
  char byte = 'x';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (::sendmsg(socket, &message, 0) != 1) ::_exit(1);
}

int ReceiveDescriptor(int socket) {
  char byte;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&message) == nullptr)
    return -1;
  int fd;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
  return fd;
}

// In the child: no test framework, only a region that is served until the process is killed.
[[noreturn]] void ServeUntilKilled(int socket) {
  auto region = Region::Create(Options());
  if (!region.ok() || !(*region)->StartLifeline().ok()) ::_exit(1);
  SendDescriptor(socket, (*region)->fd());
  while (true) ::pause();
}

TEST_CASE("Lifeline: a killed owner is seen as dead by a process that only maps the region") {
  int sockets[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
  const UniqueFd ours(sockets[0]);
  UniqueFd theirs(sockets[1]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ServeUntilKilled(theirs.get());
  theirs.Reset();
  const UniqueFd fd(ReceiveDescriptor(ours.get()));
  REQUIRE(fd.valid());
  auto readable = MappedMemory::Map({.fd = fd.get(), .length_bytes = 8 * kMiB});
  KVD_REQUIRE_OK(readable);
  const uint32_t alive = LifelineWord(readable->base());
  REQUIRE(LifelineAlive(alive));

  REQUIRE(::kill(child, SIGKILL) == 0);
  // The socket's end is noticed only after the word has been marked: that is what a reader relies
  // on.
  char byte;
  REQUIRE(::recv(ours.get(), &byte, 1, 0) == 0);
  const uint32_t dead = LifelineWord(readable->base());
  REQUIRE_FALSE(LifelineAlive(dead));
  REQUIRE((dead & kLifelineOwnerDied) != 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
}

}  // namespace
}  // namespace kvd
