// Values that say which key they belong to, so that whoever reads one can tell by itself whether it
// may be what that key has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvd::bench {

// Shorter values hold no stamp: they follow from key and length alone.
inline constexpr size_t kStampedBytesMin = 16;

// Writes `size` bytes: `stamp`, then words that follow from the key's number, the length and the
// stamp. No two writes should have the same stamp: then a mixture of two writes is recognized too.
void FillValue(uint64_t key, uint64_t stamp, char* into, size_t size);

enum class Verify {
  kFull,  // every byte
  kHead,  // the first 16 bytes and the length
  kOff,
};

// Whether some FillValue for this key wrote these bytes.
bool BelongsToKey(uint64_t key, std::string_view value, Verify verify = Verify::kFull);

}  // namespace kvd::bench
