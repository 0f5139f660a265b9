#include "client/bench/kvbench/bench_value.h"

#include <algorithm>
#include <cstring>

#include "common/base/hash.h"

namespace kvd::bench {
namespace {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15;  // odd, so that no two words of a value are alike

uint64_t SealOf(uint64_t key, uint64_t stamp, size_t size) {
  return Mix64(Mix64(key + kStep) + stamp * 0xD6E8FEB86659FD93 + size);
}

uint64_t WordAt(uint64_t seal, size_t index) { return seal + index * kStep; }

}  // namespace

void FillValue(uint64_t key, uint64_t stamp, char* into, size_t size) {
  size_t at = 0;
  if (size >= kStampedBytesMin) {
    std::memcpy(into, &stamp, sizeof(stamp));
    at = sizeof(stamp);
  } else {
    stamp = 0;
  }
  const uint64_t seal = SealOf(key, stamp, size);
  for (size_t index = 0; at + 8 <= size; at += 8, ++index) {
    const uint64_t word = WordAt(seal, index);
    std::memcpy(into + at, &word, sizeof(word));
  }
  if (at < size) {
    const uint64_t last = Mix64(seal);
    std::memcpy(into + at, &last, size - at);
  }
}

bool BelongsToKey(uint64_t key, std::string_view value, Verify verify) {
  if (verify == Verify::kOff) return true;
  uint64_t stamp = 0;
  size_t at = 0;
  if (value.size() >= kStampedBytesMin) {
    std::memcpy(&stamp, value.data(), sizeof(stamp));
    at = sizeof(stamp);
  }
  const uint64_t seal = SealOf(key, stamp, value.size());
  const size_t end =
      verify == Verify::kHead ? std::min(value.size(), kStampedBytesMin) : value.size();
  uint64_t difference = 0;  // without a branch a word, so that the compiler can take many at once
  for (size_t index = 0; at + 8 <= end; at += 8, ++index) {
    uint64_t word;
    std::memcpy(&word, value.data() + at, sizeof(word));
    difference |= word ^ WordAt(seal, index);
  }
  const uint64_t last = Mix64(seal);
  if (at < end && std::memcmp(value.data() + at, &last, end - at) != 0) return false;
  return difference == 0;
}

}  // namespace kvd::bench
