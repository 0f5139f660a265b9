#include "server/store/region_memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/machine_memory.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "server/store/numa_memory.h"
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
  if (options.numa_node >= 0) {
    const absl::Status bound = BindToNode(base, bytes, options.numa_node, options.numa_strict);
    if (options.numa_strict) KVD_RETURN_IF_ERROR(bound);
    memory.placement = std::string(ToStd(bound.message()));
  }
  KVD_RETURN_IF_ERROR(Prefault({.base = base,
                                .bytes = bytes,
                                .fd = memory.fd.get(),
                                .page_bytes = attempt.page_bytes,
                                .threads = options.prefault_threads,
                                .progress = options.progress,
                                .cancelled = options.cancelled}));
  if (options.numa_node >= 0 && memory.placement.empty()) {
    memory.placement = PagesElsewhere(base, bytes, options.numa_node);
  }
  return memory;
}

// No other kind of page is to be tried.
bool IsLast(const absl::StatusOr<RegionMemory>& attempt) {
  return attempt.ok() || absl::IsCancelled(attempt.status());
}

// Pages that a region on `node` (-1: any) can have.
uint64_t FreePages(uint64_t page_bytes, int node) {
  const uint64_t free = FreeHugepages(page_bytes);
  return node < 0 ? free : std::min(free, FreeHugepagesOfNode(node, page_bytes));
}

bool Gigantic(uint64_t memory_bytes, int node) {
  return memory_bytes >= kGiganticPageBytes && memory_bytes % kGiganticPageBytes == 0 &&
         FreePages(kGiganticPageBytes, node) >= memory_bytes / kGiganticPageBytes;
}

// The node that must have all of it.
int OnlyNode(const RegionOptions& options) { return options.numa_strict ? options.numa_node : -1; }

// For whoever required them: all that is known.
absl::Status HugepageShortage(uint64_t memory_bytes, int node, absl::string_view cause = "") {
  const uint64_t needed = memory_bytes / kHugePageBytes;
  if (node >= 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "--hugepages=require: need ", needed, " x 2 MiB hugepages on NUMA node ", node, ", free ",
        FreePages(kHugePageBytes, node), cause.empty() ? "" : " (", cause, cause.empty() ? "" : ")",
        "; write ", needed, " to /sys/devices/system/node/node", node,
        "/hugepages/hugepages-2048kB/nr_hugepages, or --numa_node=off, or --hugepages=off"));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "--hugepages=require: need ", needed, " x 2 MiB hugepages, free ",
      FreeHugepages(kHugePageBytes), cause.empty() ? "" : " (", cause, cause.empty() ? "" : ")",
      "; sysctl vm.nr_hugepages=", needed, " or --hugepages=off"));
}

// For whoever would have liked them: nothing to worry about.
std::string FallbackText(uint64_t memory_bytes, int node) {
  const uint64_t needed = memory_bytes / kHugePageBytes;
  const uint64_t free = FreePages(kHugePageBytes, node);
  if (free >= needed) return "the kernel did not give 2 MiB hugepages";
  return absl::StrCat(free == 0 ? "no" : "too few", " 2 MiB hugepages free: need ", needed,
                      ", free ", free);
}

// Ordinary memory comes out of what is available; asking for more would have the kernel kill
// somebody.
absl::Status CheckAvailable(uint64_t memory_bytes, int node) {
  if (node >= 0) KVD_RETURN_IF_ERROR(CheckNodeMemory(memory_bytes, node));
  const MachineMemory machine = ReadMachineMemory();
  if (memory_bytes <= machine.usable_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--memory=", FormatBytes(memory_bytes),
                   " is more than this machine can give: ", machine.Describe()));
}

// Pages out of the kernel's pool of huge ones.
absl::StatusOr<RegionMemory> TakeHuge(const RegionOptions& options, uint64_t minimum_bytes) {
  const int node = OnlyNode(options);
  KVD_RETURN_IF_ERROR(CheckHugepages(options.memory_bytes, node));
  if (Gigantic(options.memory_bytes, node)) {
    absl::StatusOr<RegionMemory> memory = Take(kGigantic, options);
    if (IsLast(memory)) return memory;
  }
  if (options.memory_bytes / kHugePageBytes * kHugePageBytes < minimum_bytes) {
    return HugepageShortage(options.memory_bytes, node, "too little memory for whole pages");
  }
  absl::StatusOr<RegionMemory> memory = Take(kHuge, options);
  if (IsLast(memory)) return memory;
  return HugepageShortage(options.memory_bytes, node, memory.status().message());
}

absl::StatusOr<RegionMemory> TakeSmall(const RegionOptions& options) {
  absl::StatusOr<RegionMemory> memory = Take(kSmall, options);
  if (IsLast(memory)) return memory;
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

absl::Status CheckHugepages(uint64_t memory_bytes, int node) {
  if (Gigantic(memory_bytes, node)) return absl::OkStatus();
  if (FreePages(kHugePageBytes, node) >= memory_bytes / kHugePageBytes) return absl::OkStatus();
  return HugepageShortage(memory_bytes, node);
}

absl::StatusOr<RegionMemory> RegionMemory::Create(const RegionOptions& options,
                                                  uint64_t minimum_bytes) {
  KVD_RETURN_IF_ERROR(CheckTotal(options.memory_bytes));
  std::string fallback;
  if (options.hugepages != HugepagePolicy::kOff) {
    absl::StatusOr<RegionMemory> memory = TakeHuge(options, minimum_bytes);
    if (IsLast(memory) || options.hugepages == HugepagePolicy::kRequire) return memory;
    fallback = FallbackText(options.memory_bytes, OnlyNode(options));
  }
  KVD_RETURN_IF_ERROR(CheckAvailable(options.memory_bytes, OnlyNode(options)));
  absl::StatusOr<RegionMemory> memory = absl::UnavailableError("not tried");
  if (options.hugepages == HugepagePolicy::kPrefer && TransparentHugepagesForSharedMemory()) {
    memory = Take(kTransparent, options);
  }
  if (!IsLast(memory)) memory = TakeSmall(options);
  if (memory.ok()) memory->fallback = std::move(fallback);
  return memory;
}

absl::Status RegionMemory::Seal() {
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0)
    return ErrnoStatus("sealing the region (F_ADD_SEALS)");
  return absl::OkStatus();
}

}  // namespace kvd
