#include "server/store/region.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "server/store/lifeline.h"

namespace kvd {
namespace {

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Enough entries for one shard to have every segment of the region that is its share, and a quarter
// more: hashing spreads keys evenly, and a shard whose directory is full goes on with longer
// chains.
uint32_t DirectoryEntries(uint64_t region_bytes, uint32_t shard_count) {
  const uint64_t segments = region_bytes / kSegmentBytes;
  const uint64_t per_shard = segments / shard_count + segments / shard_count / 4 + 1;
  return static_cast<uint32_t>((shard_count == 1 ? segments : per_shard) * shard_count);
}

RegionOffset HeapBegin(const Geometry& geometry) {
  return RegionOffset{
      RoundUp(geometry.directory_offset + uint64_t{geometry.directory_entries} * sizeof(uint64_t),
              kPageBytes)};
}

absl::Status CheckOptions(const RegionOptions& options) {
  if (options.shard_count == 0 || options.shard_count > kShardsMax) {
    return absl::InvalidArgumentError(absl::StrCat("region: ", options.shard_count,
                                                   " shards; 1 to ", kShardsMax, " are possible"));
  }
  const uint64_t minimum = Region::MinimumBytes(options.shard_count);
  if (options.memory_bytes < minimum) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory=", FormatBytes(options.memory_bytes), " is below the minimum of ",
                     FormatBytes(minimum), " for ", options.shard_count, " shards"));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t Region::MinimumBytes(uint32_t shard_count) { return (uint64_t{shard_count} + 3) * kMiB; }

absl::StatusOr<std::unique_ptr<Region>> Region::Create(const RegionOptions& options) {
  KVD_RETURN_IF_ERROR(CheckOptions(options));
  Geometry geometry;
  geometry.incarnation = options.incarnation;
  while (geometry.incarnation == 0) {
    KVD_ASSIGN_OR_RETURN(geometry.incarnation, RandomU64FromOs());
  }
  geometry.bucket_bytes = options.bucket_bytes;
  geometry.shard_count = options.shard_count;
  geometry.directory_offset = sizeof(Superblock);
  const auto set_size = [&](uint64_t bytes) {
    geometry.region_bytes = bytes;
    geometry.directory_entries = DirectoryEntries(bytes, options.shard_count);
  };
  set_size(options.memory_bytes);
  KVD_RETURN_IF_ERROR(CheckGeometry(geometry));  // before pages are taken
  KVD_ASSIGN_OR_RETURN(RegionMemory memory,
                       RegionMemory::Create(options, MinimumBytes(options.shard_count)));
  set_size(memory.mapping.length_bytes());
  KVD_CHECK(CheckGeometry(geometry).ok());
  std::unique_ptr<Region> region(new Region(std::move(memory), geometry));
  region->WriteSuperblock();
  KVD_RETURN_IF_ERROR(region->memory_.Seal());
  return region;
}

Region::Region(RegionMemory memory, const Geometry& geometry)
    : memory_(std::move(memory)),
      geometry_(geometry),
      base_(memory_.mapping.base()),
      pages_(HeapBegin(geometry), RegionOffset{geometry.region_bytes / kPageBytes * kPageBytes},
             geometry.shard_count) {}

Region::~Region() = default;

// The memory is fresh and zero, and nobody else has it yet: plain stores will do.
void Region::WriteSuperblock() {
  RegionIdentity identity{};
  identity.magic = kSuperblockMagic;
  identity.layout_version = kLayoutVersion;
  identity.feature_bits = 0;
  identity.incarnation = geometry_.incarnation;
  identity.region_bytes = geometry_.region_bytes;
  identity.bucket_bytes = geometry_.bucket_bytes;
  identity.shard_count = geometry_.shard_count;
  identity.directory_offset = geometry_.directory_offset;
  identity.directory_entries = geometry_.directory_entries;
  identity.segment_bytes = kSegmentBytes;
  identity.created_unix_us = static_cast<uint64_t>(RealClock::Get().NowUnixUs());
  identity.checksum = Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic);
  std::memcpy(&superblock().identity, &identity, sizeof(identity));
}

absl::Status Region::StartLifeline() {
  KVD_CHECK(lifeline_ == nullptr);
  KVD_ASSIGN_OR_RETURN(lifeline_, LifelineThread::Start(&superblock().lifeline.word));
  return absl::OkStatus();
}

}  // namespace kvd
