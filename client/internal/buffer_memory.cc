#include "client/internal/buffer_memory.h"

#include <algorithm>

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
  for (const Registration& registration : registrations_) {
    const std::shared_ptr<Registrar> registrar = registration.registrar.lock();
    if (registrar == nullptr || registrar->fork_generation != ForkGeneration()) continue;
    registrar->channel->Free(registration.buffer);
  }
}

absl::StatusOr<TransferBuffer> BufferMemory::RegisterWith(const std::shared_ptr<Registrar>& registrar) {
  const auto found = std::find_if(
      registrations_.begin(), registrations_.end(),
      [&](const Registration& registration) { return registration.registrar.lock() == registrar; });
  TransferBuffer buffer;
  if (found != registrations_.end()) {
    buffer = found->buffer;
  } else {
    KVD_ASSIGN_OR_RETURN(buffer, registrar->channel->Register(pages_));
    std::erase_if(registrations_, [](const Registration& registration) { return registration.registrar.expired(); });
    registrations_.push_back({registrar, buffer});
  }
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
