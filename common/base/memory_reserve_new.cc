// `new` and `delete` of programs that keep a reserve. Those that are not defined here come down to
// these, as the standard library has them.
#include <cstdlib>
#include <new>

#include "common/base/memory_reserve.h"

namespace {

constexpr size_t kReserveBytes = size_t{1} << 20;  // takes pages only once it is used

alignas(kvd::MemoryReserve::kAlignment) constinit std::byte memory[kReserveBytes]{};
constinit kvd::MemoryReserve reserve(memory);

void* New(size_t alignment, size_t bytes) {
  void* const found = alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
                          ? std::malloc(bytes)
                          : std::aligned_alloc(alignment, bytes);
  if (found != nullptr) [[likely]]
    return found;
  if (!kvd::memory_reserve_internal::denied && alignment <= kvd::MemoryReserve::kAlignment) {
    if (void* const kept = reserve.Take(bytes)) return kept;
  }
  throw std::bad_alloc();
}

void Delete(void* at) noexcept {
  if (reserve.Owns(at)) [[unlikely]]
    return reserve.GiveBack(at);
  std::free(at);
}

}  // namespace

void* operator new(size_t bytes) {
  return New(__STDCPP_DEFAULT_NEW_ALIGNMENT__, bytes == 0 ? 1 : bytes);
}

void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  return New(unit, (bytes + unit - 1) / unit * unit);
}

void operator delete(void* at) noexcept { Delete(at); }
void operator delete(void* at, size_t) noexcept { Delete(at); }
void operator delete(void* at, std::align_val_t) noexcept { Delete(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { Delete(at); }
