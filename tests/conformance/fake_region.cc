#include "tests/conformance/fake_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/layout/superblock.h"

namespace kvd::test {

FakeRegion::FakeRegion(uint64_t incarnation)
    : incarnation_(incarnation), fd_(memfd_create("fake-region", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  KVD_CHECK(fd_.valid());
  KVD_CHECK(ftruncate(fd_.get(), kBytes) == 0);
  MappedMemory::Options options;
  options.length_bytes = kBytes + kLandingBytes;
  options.protection = PROT_READ | PROT_WRITE;
  options.flags = MAP_PRIVATE;
  memory_ = MappedMemory::Map(options).value();
  KVD_CHECK(mmap(base(), kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_.get(), 0) ==
            base());
  KVD_CHECK(fcntl(fd_.get(), F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);

  auto& identity = reinterpret_cast<Superblock*>(base())->identity;
  identity.magic = kSuperblockMagic;
  identity.layout_version = kLayoutVersion;
  identity.incarnation = incarnation;
  identity.region_bytes = kBytes;
  identity.bucket_bytes = kBucketBytesDefault;
  identity.shard_count = 1;
  identity.directory_offset = kPageBytes;
  identity.directory_entries = 4;
  identity.segment_bytes = kSegmentBytes;
  identity.checksum = Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic);
  for (uint64_t i = kDataOffset / 8; i < kBytes / 8; ++i) {
    const uint64_t word = Word(i);
    std::memcpy(base() + i * 8, &word, sizeof(word));
  }
}

Welcome FakeRegion::MakeWelcome(uint64_t session_id, uint32_t credits, uint32_t frame_bytes) const {
  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.status = static_cast<uint32_t>(WelcomeStatus::kAdmitted);
  welcome.incarnation = incarnation_;
  welcome.region_bytes = kBytes;
  welcome.bucket_bytes = kBucketBytesDefault;
  welcome.shard_count = 1;
  welcome.directory_entries = 4;
  welcome.directory_offset = kPageBytes;
  welcome.session_id = session_id;
  welcome.credits = credits;
  welcome.frame_bytes = frame_bytes;
  welcome.max_value_bytes = uint64_t{64} << 20;
  welcome.server_pid = static_cast<uint32_t>(getpid());
  welcome.role = static_cast<uint32_t>(Role::kReadWrite);
  return welcome;
}

}  // namespace kvd::test
