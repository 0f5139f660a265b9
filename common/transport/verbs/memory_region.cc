#include "common/transport/verbs/memory_region.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/transport/verbs/wc_status.h"

namespace kvd::verbs {

absl::StatusOr<MemoryRegion> MemoryRegion::Register(std::shared_ptr<ProtectionDomain> pd,
                                                    std::span<std::byte> memory, int access) {
  const uint64_t limit_bytes = pd->context()->attributes().max_mr_size;
  if (memory.size() > limit_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("registering ", FormatBytes(memory.size()), " with ", pd->context()->name(),
                     ": its largest memory region is ", FormatBytes(limit_bytes)));
  }
  ibv_mr* mr = ibv_reg_mr(pd->get(), memory.data(), memory.size(), access);
  if (mr == nullptr) return RegistrationStatus(errno, pd->context()->name(), memory.size());
  return MemoryRegion(std::move(pd), mr);
}

MemoryRegion& MemoryRegion::operator=(MemoryRegion&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  mr_ = std::exchange(other.mr_, nullptr);
  pd_ = std::move(other.pd_);
  return *this;
}

void MemoryRegion::Reset() {
  if (ibv_mr* mr = std::exchange(mr_, nullptr)) ibv_dereg_mr(mr);
  pd_.reset();
}

absl::StatusOr<RegisteredPages> RegisteredPages::Create(std::shared_ptr<ProtectionDomain> pd,
                                                        size_t bytes, int access) {
  constexpr size_t kPage = 4096;
  RegisteredPages pages;
  MappedMemory::Options options;
  options.length_bytes = (bytes + kPage - 1) / kPage * kPage;
  options.protection = PROT_READ | PROT_WRITE;
  options.flags = MAP_PRIVATE;
  KVD_ASSIGN_OR_RETURN(pages.memory_, MappedMemory::Map(options));
  KVD_ASSIGN_OR_RETURN(
      pages.region_,
      MemoryRegion::Register(std::move(pd), {pages.memory_.base(), options.length_bytes}, access));
  return pages;
}

}  // namespace kvd::verbs
