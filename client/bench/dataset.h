// The items of a benchmark: 8-byte keys, and values that name the next key to read.
#pragma once

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/random.h"

namespace kvd::bench {

// Key number n as its 8 bytes: scattered, so that neither store profits from an order.
struct Key {
  explicit Key(uint64_t n) {
    const uint64_t scattered = Mix64(n + 1);
    std::memcpy(bytes, &scattered, sizeof(bytes));
  }
  std::string_view view() const { return {bytes, sizeof(bytes)}; }
  char bytes[8];
};

// One cycle through all keys in random order (Sattolo's algorithm), so that a chain of reads, each depending on the
// value of the one before, visits every key before it repeats.
class Dataset {
 public:
  // `value_bytes` at least 8.
  Dataset(uint64_t keys, uint64_t value_bytes, uint64_t seed) : value_bytes_(value_bytes), next_(keys) {
    std::iota(next_.begin(), next_.end(), uint64_t{0});
    Random random(seed);
    for (uint64_t i = keys - 1; i > 0; --i) std::swap(next_[i], next_[random.Uniform(i)]);
  }

  uint64_t keys() const { return next_.size(); }
  uint64_t value_bytes() const { return value_bytes_; }

  void FillValue(uint64_t n, std::string& value) const {
    value.assign(value_bytes_, static_cast<char>('a' + n % 26));
    std::memcpy(value.data(), &next_[n], sizeof(uint64_t));
  }

  // The number of the key that follows, as a value read from a store says.
  static uint64_t NextIn(std::string_view value) {
    uint64_t next;
    std::memcpy(&next, value.data(), sizeof(next));
    return next;
  }

 private:
  uint64_t value_bytes_;
  std::vector<uint64_t> next_;
};

}  // namespace kvd::bench
