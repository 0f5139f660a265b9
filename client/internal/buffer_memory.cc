#include "client/internal/buffer_memory.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/layout/item.h"

namespace kvd {

absl::StatusOr<std::shared_ptr<BufferMemory>> BufferMemory::Create(size_t bytes) {
  static_assert(kHeadroomBytes >= kLongItemHeaderBytes + OptionalBytes(kItemFlagsKnown) + kKeyBytesMax);
  constexpr size_t kBytesMax = size_t{1} << 40;
  if (bytes == 0 || bytes > kBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("a buffer has 1 to ", kBytesMax, " bytes"));
  }
  // A slot rounds the size of an item up by less than 1/128.
  KVD_ASSIGN_OR_RETURN(std::shared_ptr<SharedPages> pages,
                       SharedPages::Create(kHeadroomBytes + bytes + bytes / 128 + kHeadroomBytes / 128 + 16));
  return std::shared_ptr<BufferMemory>(new BufferMemory(std::move(pages), bytes));
}

BufferMemory::~BufferMemory() {
  const std::shared_ptr<Registrar> registrar = registrar_.lock();
  if (registrar == nullptr || registrar->fork_generation != ForkGeneration()) return;
  registrar->channel->Free(registration_);
}

absl::StatusOr<TransferBuffer> BufferMemory::RegisterWith(const std::shared_ptr<Registrar>& registrar) {
  if (registrar_.lock() != registrar) {
    KVD_ASSIGN_OR_RETURN(registration_, registrar->channel->Register(pages_));
    registrar_ = registrar;
  }
  TransferBuffer buffer = registration_;
  buffer.bytes = buffer.bytes.subspan(kHeadroomBytes, size_);
  buffer.address += kHeadroomBytes;
  return buffer;
}

std::byte* BufferMemory::PlaceFor(uint64_t before_value, uint64_t item_bytes) const {
  if (before_value > kHeadroomBytes) return nullptr;
  if (item_bytes > pages_->length_bytes() - kHeadroomBytes + before_value) return nullptr;
  return data() - before_value;
}

}  // namespace kvd
