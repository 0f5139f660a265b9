#include "client/cli/size_census.h"

namespace kvd::cli {

SizeCensus::SizeCensus() {
  uint64_t bytes_max = 64;
  for (Class& one : classes_) {
    one.bytes_max = bytes_max;
    bytes_max *= 16;  // 64 B, 1 KiB, 16 KiB, 256 KiB, 4 MiB, 64 MiB
  }
  static_assert(64 * (uint64_t{1} << (4 * (kClasses - 2))) == kBoundMax);
  classes_.back().bytes_max = UINT64_MAX;
}

void SizeCensus::Add(std::string_view key, uint64_t value_bytes, bool expires) {
  ++items_;
  key_bytes_ += key.size();
  value_bytes_ += value_bytes;
  expiring_ += expires ? 1 : 0;
  size_t i = 0;
  while (classes_[i].bytes_max < value_bytes) ++i;
  Class& mine = classes_[i];
  if (mine.items == 0 || value_bytes > mine.largest_bytes) {
    mine.largest_bytes = value_bytes;
    mine.largest_key = key;
  }
  ++mine.items;
  mine.value_bytes += value_bytes;
}

}  // namespace kvd::cli
