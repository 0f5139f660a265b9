#include "common/transport/shm/region_window.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/layout/superblock.h"
#include "common/protocol/racy_copy.h"
#include "common/transport/sealed_memory.h"

namespace kvd {
namespace {

absl::Status CheckIdentity(const std::byte* window, const Welcome& welcome) {
  RegionIdentity identity;
  RacyCopy(&identity, window, sizeof(identity));
  if (identity.magic != kSuperblockMagic) {
    return absl::DataLossError("the region has a wrong magic");
  }
  if (Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic) !=
      identity.checksum) {
    return absl::DataLossError("the region's superblock does not verify");
  }
  if (identity.layout_version != kLayoutVersion ||
      (identity.feature_bits & ~kLayoutFeaturesKnown) != 0) {
    return absl::DataLossError(absl::StrCat("the region has layout version ",
                                            identity.layout_version, ", feature bits ",
                                            identity.feature_bits, "; this client knows version ",
                                            kLayoutVersion, ", bits ", kLayoutFeaturesKnown));
  }
  if (identity.incarnation != welcome.incarnation ||
      identity.region_bytes != welcome.region_bytes ||
      identity.bucket_bytes != welcome.bucket_bytes ||
      identity.shard_count != welcome.shard_count ||
      identity.directory_offset != welcome.directory_offset ||
      identity.directory_entries != welcome.directory_entries) {
    return absl::DataLossError("the region is not the one that the server announced");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MappedMemory> MapRegionWindow(const UniqueFd& fd, const Welcome& welcome) {
  if (absl::Status sealed = CheckSealedMemory(fd.get(), welcome.region_bytes); !sealed.ok()) {
    return absl::DataLossError(absl::StrCat("the region's descriptor: ", sealed.message()));
  }
  struct stat facts;
  if (fstat(fd.get(), &facts) != 0) return ErrnoStatus("fstat of the region");
  if (static_cast<uint64_t>(facts.st_size) != welcome.region_bytes ||
      welcome.region_bytes < sizeof(Superblock)) {
    return absl::DataLossError(absl::StrCat("the region has ", facts.st_size,
                                            " bytes, announced were ", welcome.region_bytes));
  }
  MappedMemory::Options options;
  options.fd = fd.get();
  options.length_bytes = welcome.region_bytes;
  // For hugetlbfs st_blksize is the size of its pages.
  options.alignment_bytes = std::max<size_t>(2 * kMiB, static_cast<size_t>(facts.st_blksize));
  KVD_ASSIGN_OR_RETURN(MappedMemory window, MappedMemory::Map(options));
  madvise(window.base(), window.length_bytes(), MADV_HUGEPAGE);  // a wish: small pages work too
  KVD_RETURN_IF_ERROR(CheckIdentity(window.base(), welcome));
  return window;
}

}  // namespace kvd
