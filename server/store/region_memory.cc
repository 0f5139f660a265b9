#include "server/store/region_memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "server/store/machine_memory.h"
#include "server/store/prefault.h"

#if !defined(MFD_NOEXEC_SEAL)
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#if !defined(F_SEAL_FUTURE_WRITE)
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace kvd {
namespace {

constexpr uint64_t kSmallPageBytes = 4 * kKiB;
constexpr uint64_t kHugePageBytes = 2 * kMiB;
constexpr uint64_t kGiganticPageBytes = kGiB;

// How one kind of page is asked for.
struct Attempt {
  PageKind kind;
  uint64_t page_bytes;
  unsigned memfd_flags;
};

constexpr Attempt kGigantic{PageKind::kHuge1GiB, kGiganticPageBytes, MFD_HUGETLB | MFD_HUGE_1GB};
constexpr Attempt kHuge{PageKind::kHuge2MiB, kHugePageBytes, MFD_HUGETLB | MFD_HUGE_2MB};
constexpr Attempt kTransparent{PageKind::kTransparent, kHugePageBytes, 0};
constexpr Attempt kSmall{PageKind::kSmall, kSmallPageBytes, 0};

absl::StatusOr<UniqueFd> CreateDescriptor(const Attempt& attempt, uint64_t bytes) {
  // Kernels before 6.3 do not know the flag that forbids executing; the file holds no code either
  // way.
  const unsigned flags = MFD_CLOEXEC | attempt.memfd_flags;
  int fd = ::memfd_create("kvd-region", flags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create("kvd-region", flags | MFD_ALLOW_SEALING);
  if (fd < 0) return ErrnoStatus("memfd_create of the region");
  UniqueFd owned(fd);
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    return ErrnoStatus(ToStd(absl::StrCat("ftruncate of the region to ", FormatBytes(bytes))));
  }
  return owned;
}

// One attempt from beginning to end. On an error everything that was taken is given back.
absl::StatusOr<RegionMemory> Take(const Attempt& attempt, const RegionOptions& options) {
  const uint64_t rounding =
      attempt.kind == PageKind::kTransparent ? kSmallPageBytes : attempt.page_bytes;
  const uint64_t bytes = options.memory_bytes / rounding * rounding;
  RegionMemory memory;
  memory.page_kind = attempt.kind;
  KVD_ASSIGN_OR_RETURN(memory.fd, CreateDescriptor(attempt, bytes));
  KVD_ASSIGN_OR_RETURN(memory.mapping, MappedMemory::Map({.fd = memory.fd.get(),
                                                          .length_bytes = bytes,
                                                          .protection = PROT_READ | PROT_WRITE,
                                                          .flags = MAP_SHARED,
                                                          .alignment_bytes = attempt.page_bytes}));
  std::byte* base = memory.mapping.base();
  if (attempt.kind == PageKind::kTransparent && ::madvise(base, bytes, MADV_HUGEPAGE) != 0) {
    return ErrnoStatus("madvise(MADV_HUGEPAGE) of the region");
  }
  // A core dump is for kvd's own state; the region would make it as large as the machine. Best
  // effort.
  ::madvise(base, bytes, MADV_DONTDUMP);
  KVD_RETURN_IF_ERROR(Prefault({.base = base,
                                .bytes = bytes,
                                .fd = memory.fd.get(),
                                .page_bytes = attempt.page_bytes,
                                .threads = options.prefault_threads,
                                .progress = options.progress}));
  return memory;
}

std::string HugepageShortage(uint64_t memory_bytes) {
  const uint64_t needed = memory_bytes / kHugePageBytes;
  return absl::StrCat("need ", needed, " x 2 MiB hugepages, free ", FreeHugepages(kHugePageBytes));
}

bool Gigantic(const RegionOptions& options) {
  return options.memory_bytes >= kGiganticPageBytes &&
         options.memory_bytes % kGiganticPageBytes == 0 &&
         FreeHugepages(kGiganticPageBytes) >= options.memory_bytes / kGiganticPageBytes;
}

// Ordinary memory comes out of what is available; asking for more would have the kernel kill
// somebody.
absl::Status CheckAvailable(uint64_t memory_bytes) {
  const MachineMemory machine = ReadMachineMemory();
  if (memory_bytes <= machine.usable_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--memory=", FormatBytes(memory_bytes),
                   " is more than this machine can give: ", machine.Describe()));
}

// Pages out of the kernel's pool of huge ones. On an error `shortage` says what is missing.
absl::StatusOr<RegionMemory> TakeHuge(const RegionOptions& options, uint64_t minimum_bytes,
                                      std::string& shortage) {
  if (Gigantic(options)) {
    absl::StatusOr<RegionMemory> memory = Take(kGigantic, options);
    if (memory.ok()) return memory;
  }
  shortage = HugepageShortage(options.memory_bytes);
  if (options.memory_bytes / kHugePageBytes * kHugePageBytes >= minimum_bytes) {
    absl::StatusOr<RegionMemory> memory = Take(kHuge, options);
    if (memory.ok()) return memory;
    absl::StrAppend(&shortage, " (", memory.status().message(), ")");
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "--hugepages=require: ", shortage,
      "; sysctl vm.nr_hugepages=", options.memory_bytes / kHugePageBytes, " or --hugepages=off"));
}

absl::StatusOr<RegionMemory> TakeTransparent(const RegionOptions& options, std::string& shortage) {
  static constexpr char kSetting[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  if (!TransparentHugepagesForSharedMemory()) {
    absl::StrAppend(&shortage, "; transparent ones for shared memory are off in ", kSetting);
    return absl::UnavailableError(shortage);
  }
  absl::StatusOr<RegionMemory> memory = Take(kTransparent, options);
  if (!memory.ok()) absl::StrAppend(&shortage, "; transparent ones: ", memory.status().message());
  return memory;
}

absl::StatusOr<RegionMemory> TakeSmall(const RegionOptions& options) {
  absl::StatusOr<RegionMemory> memory = Take(kSmall, options);
  if (memory.ok()) return memory;
  return absl::ResourceExhaustedError(absl::StrCat("--memory=", FormatBytes(options.memory_bytes),
                                                   " cannot be had: ", memory.status().message(),
                                                   "; ", ReadMachineMemory().Describe()));
}

absl::Status CheckTotal(uint64_t memory_bytes) {
  const MachineMemory machine = ReadMachineMemory();
  if (machine.total_bytes == 0 || memory_bytes <= machine.total_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--memory=", FormatBytes(memory_bytes),
                   " is more than this machine has: ", FormatBytes(machine.total_bytes)));
}

}  // namespace

absl::StatusOr<RegionMemory> RegionMemory::Create(const RegionOptions& options,
                                                  uint64_t minimum_bytes) {
  KVD_RETURN_IF_ERROR(CheckTotal(options.memory_bytes));
  std::string shortage;
  if (options.hugepages != HugepagePolicy::kOff) {
    absl::StatusOr<RegionMemory> memory = TakeHuge(options, minimum_bytes, shortage);
    if (memory.ok() || options.hugepages == HugepagePolicy::kRequire) return memory;
  }
  KVD_RETURN_IF_ERROR(CheckAvailable(options.memory_bytes));
  if (options.hugepages == HugepagePolicy::kPrefer) {
    absl::StatusOr<RegionMemory> memory = TakeTransparent(options, shortage);
    if (memory.ok()) {
      memory->fallback = absl::StrCat("transparent huge pages: ", shortage);
      return memory;
    }
  }
  absl::StatusOr<RegionMemory> memory = TakeSmall(options);
  if (memory.ok() && !shortage.empty()) memory->fallback = absl::StrCat("4 KiB pages: ", shortage);
  return memory;
}

absl::Status RegionMemory::Seal() {
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0)
    return ErrnoStatus("sealing the region (F_ADD_SEALS)");
  return absl::OkStatus();
}

}  // namespace kvd
