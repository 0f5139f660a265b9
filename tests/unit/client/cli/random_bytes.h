// Bytes that find the corners of a codec.
#pragma once

#include <string>

#include "common/base/random.h"

namespace kvd::cli::test {

// Up to `bytes_max` bytes: any, or only those that mean something to a format, or UTF-8.
inline std::string RandomBytes(Random& random, size_t bytes_max) {
  constexpr char kTricky[] = "\t\n\r\\\"'{}:,x0\x7f\xef\xbb\xbf\xff\x80";
  const size_t length = random.Uniform(bytes_max + 1);
  const uint64_t kind = random.Uniform(3);
  std::string bytes;
  while (bytes.size() < length) {
    if (kind == 0) {
      bytes += static_cast<char>(random.Uniform(256));
    } else if (kind == 1) {
      bytes += kTricky[random.Uniform(sizeof(kTricky))];  // its NUL too
    } else {
      constexpr const char* kCharacters[] = {"a", "\u00e9", "\u4e2d", "\U0001F600", "\u0085"};
      bytes += kCharacters[random.Uniform(5)];
    }
  }
  return bytes;
}

}  // namespace kvd::cli::test
