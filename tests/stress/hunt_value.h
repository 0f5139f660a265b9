// Values that certify themselves: whoever reads one can tell which write made it and that it is
// whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvd::test {

// Each key has one writer, whose writes are numbered 1, 2, 3, ...: its generations. Every sixteenth
// is a delete.
constexpr bool IsDelete(uint64_t generation) { return generation % 16 == 15; }

// True if between the two generations, both included, there was a moment without a value.
constexpr bool MayBeAbsent(uint64_t from, uint64_t to) {
  if (from == 0) return true;
  const uint64_t next_delete = from + (15 - from % 16);
  return next_delete <= to;
}

std::string HuntKey(uint64_t key);

// The value that generation `generation` of the key has. A quarter of the keys keeps one small size
// and a quarter one of 2,000 bytes (overwritten in place), a quarter changes between sizes up to 4
// KiB and a quarter up to 128 KiB.
void MakeHuntValue(uint64_t key, uint64_t generation, std::string& value);

// The generation that wrote `value`; nullopt if it is not, byte for byte, a value of this key.
std::optional<uint64_t> CertifyHuntValue(uint64_t key, std::string_view value);

// The same with a size of the caller's choice, of at least 24 bytes: the value says its size too.
void MakeStampedValue(uint64_t key, uint64_t generation, size_t bytes, std::string& value);
std::optional<uint64_t> CertifyStampedValue(uint64_t key, std::string_view value);

}  // namespace kvd::test
