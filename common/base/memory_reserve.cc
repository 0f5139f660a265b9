#include "common/base/memory_reserve.h"

namespace kvd {

void* MemoryReserve::Take(size_t bytes) noexcept {
  if (bytes > kPieceBytesMax) return nullptr;
  const size_t wanted = sizeof(Piece) + (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(begun_, true) && memory_.size() >= sizeof(Piece)) {
    free_ = new (memory_.data()) Piece{memory_.size() / kAlignment * kAlignment, nullptr};
  }
  for (Piece** at = &free_; *at != nullptr; at = &(*at)->next) {
    Piece* const piece = *at;
    if (piece->bytes < wanted) continue;
    if (piece->bytes - wanted > sizeof(Piece)) {
      *at = new (reinterpret_cast<std::byte*>(piece) + wanted)
          Piece{piece->bytes - wanted, piece->next};
      piece->bytes = wanted;
    } else {
      *at = piece->next;
    }
    return piece + 1;
  }
  return nullptr;
}

void MemoryReserve::GiveBack(void* memory) noexcept {
  Piece* piece = static_cast<Piece*>(memory) - 1;
  const auto borders_on = [](const Piece* a, const Piece* b) {
    return reinterpret_cast<const std::byte*>(a) + a->bytes ==
           reinterpret_cast<const std::byte*>(b);
  };
  const std::lock_guard lock(mutex_);
  Piece* before = nullptr;
  Piece* after = free_;
  for (; after != nullptr && after < piece; after = after->next) before = after;
  piece->next = after;
  if (after != nullptr && borders_on(piece, after)) {
    piece->bytes += after->bytes;
    piece->next = after->next;
  }
  if (before == nullptr) {
    free_ = piece;
  } else if (borders_on(before, piece)) {
    before->bytes += piece->bytes;
    before->next = piece->next;
  } else {
    before->next = piece;
  }
}

}  // namespace kvd
