// What fuzz targets share. A target is one function, LLVMFuzzerTestOneInput, which libFuzzer calls
// with bytes that it has made up, and replay_main.cc with those that are kept in the tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace kvd::fuzz {

// What must hold whatever the input is; otherwise the process ends, so that the input is kept.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

// Input, from front to back. What is asked for beyond its end is zero or empty.
class Feed {
 public:
  Feed(const uint8_t* data, size_t size)
      : rest_(std::as_bytes(std::span<const uint8_t>(data, size))) {}

  bool empty() const { return rest_.empty(); }

  template <typename T>
  T Take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::span<const std::byte> bytes = Bytes(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  // A number below `limit`, which is not 0.
  uint64_t Below(uint64_t limit) {
    return (limit <= 256 ? Take<uint8_t>() : Take<uint32_t>()) % limit;
  }

  std::span<const std::byte> Bytes(size_t count) {
    const std::span<const std::byte> bytes = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(bytes.size());
    return bytes;
  }
  std::span<const std::byte> Rest() { return Bytes(rest_.size()); }

  std::string_view Text(size_t count) {
    const std::span<const std::byte> bytes = Bytes(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string_view RestAsText() { return Text(rest_.size()); }

 private:
  std::span<const std::byte> rest_;
};

// Bytes in memory of exactly their length, so that a sanitizer sees what is read beyond it.
class Exactly {
 public:
  explicit Exactly(std::span<const std::byte> bytes)
      : memory_(static_cast<std::byte*>(std::malloc(std::max<size_t>(bytes.size(), 1)))),
        size_(bytes.size()) {
    if (size_ != 0) std::memcpy(memory_, bytes.data(), size_);
  }
  ~Exactly() { std::free(memory_); }
  Exactly(const Exactly&) = delete;
  Exactly& operator=(const Exactly&) = delete;

  std::span<const std::byte> bytes() const { return {memory_, size_}; }

 private:
  std::byte* memory_;
  size_t size_;
};

inline bool Within(std::string_view part, std::span<const std::byte> whole) {
  const auto* const begin = reinterpret_cast<const char*>(whole.data());
  return part.empty() ||
         (part.data() >= begin && part.data() + part.size() <= begin + whole.size());
}

}  // namespace kvd::fuzz
