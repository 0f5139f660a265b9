// The keys of a benchmark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace kvd::bench {

// Key number n as text of a given length: n scattered over all texts of (up to) 8 characters of a
// 64-letter alphabet, behind padding. One to one, so that no two numbers share a key, and without
// order, so that no store profits from one. Printable, since some of the stores to compare with
// take nothing else.
class KeyWriter {
 public:
  static constexpr size_t kLettersMax = 8;

  // How many keys of `key_size` bytes there are.
  static uint64_t CountMax(size_t key_size) {
    return uint64_t{1} << 6 * std::min(key_size, kLettersMax);
  }

  // `key_size` at least 1.
  explicit KeyWriter(size_t key_size)
      : letters_(std::min(key_size, kLettersMax)), padding_(key_size - letters_) {}

  size_t size() const { return padding_ + letters_; }

  // Writes size() bytes; `n` is below CountMax.
  void Write(uint64_t n, char* into) const {
    std::memset(into, 'k', padding_);
    uint64_t scattered = Scatter(n);
    for (size_t i = 0; i < letters_; ++i, scattered >>= 6)
      into[padding_ + i] = kAlphabet[scattered & 63];
  }

  std::string Text(uint64_t n) const {
    std::string text(size(), '\0');
    Write(n, text.data());
    return text;
  }

 private:
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  // A bijection of 6 * letters_ bits: each step, a multiplication by an odd number or the
  // combination with higher bits, can be undone.
  uint64_t Scatter(uint64_t n) const {
    const size_t bits = 6 * letters_;
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    uint64_t word = (n + 1) & mask;
    word ^= word >> (bits / 2);
    word = word * 0xBF58476D1CE4E5B9 & mask;
    word ^= word >> (bits / 2);
    word = word * 0x94D049BB133111EB & mask;
    return word ^ word >> (bits / 2);
  }

  size_t letters_;
  size_t padding_;
};

}  // namespace kvd::bench
