#include "common/protocol/geometry.h"

#include "absl/strings/str_cat.h"
#include "common/layout/slot.h"

namespace kvd {

absl::Status CheckGeometry(const Geometry& geometry) {
  if (geometry.incarnation == 0) return absl::InvalidArgumentError("geometry: incarnation is zero");
  if (!std::has_single_bit(geometry.bucket_bytes) || geometry.bucket_bytes < kBucketBytesMin ||
      geometry.bucket_bytes > kBucketBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("geometry: bucket of ", geometry.bucket_bytes,
                                                   " bytes; a power of two from ", kBucketBytesMin, " to ",
                                                   kBucketBytesMax, " was expected"));
  }
  if (geometry.shard_count == 0 || geometry.shard_count > kShardsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("geometry: ", geometry.shard_count, " shards; 1 to ", kShardsMax, " were expected"));
  }
  if (geometry.region_bytes / kLocationUnitBytes > kLocationUnitsMax) {
    return absl::InvalidArgumentError(absl::StrCat("geometry: region of ", geometry.region_bytes,
                                                   " bytes is larger than a location can address"));
  }
  if (geometry.directory_entries < geometry.shard_count) {
    return absl::InvalidArgumentError(absl::StrCat("geometry: directory of ", geometry.directory_entries,
                                                   " entries for ", geometry.shard_count, " shards"));
  }
  if (geometry.directory_offset < sizeof(Superblock) || geometry.directory_offset % sizeof(uint64_t) != 0 ||
      !geometry.Contains(RegionOffset{geometry.directory_offset},
                         uint64_t{geometry.directory_entries} * sizeof(uint64_t))) {
    return absl::InvalidArgumentError(absl::StrCat("geometry: directory of ", geometry.directory_entries,
                                                   " entries at ", geometry.directory_offset,
                                                   " is not inside the region of ", geometry.region_bytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace kvd
