// How large the values of a store are: counted in classes, with the largest of each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvd::cli {

class SizeCensus {
 public:
  struct Class {
    uint64_t bytes_max = 0;  // of a value; the last class has no bound
    uint64_t items = 0;
    uint64_t value_bytes = 0;
    uint64_t largest_bytes = 0;
    std::string largest_key;  // the first one of that size
  };
  static constexpr size_t kClasses = 7;
  static constexpr uint64_t kBoundMax = uint64_t{64} << 20;  // the largest that is a class's bound

  SizeCensus();

  void Add(std::string_view key, uint64_t value_bytes, bool expires);

  const std::array<Class, kClasses>& classes() const { return classes_; }
  uint64_t items() const { return items_; }
  uint64_t key_bytes() const { return key_bytes_; }
  uint64_t value_bytes() const { return value_bytes_; }
  uint64_t expiring() const { return expiring_; }

 private:
  std::array<Class, kClasses> classes_;
  uint64_t items_ = 0;
  uint64_t key_bytes_ = 0;
  uint64_t value_bytes_ = 0;
  uint64_t expiring_ = 0;
};

}  // namespace kvd::cli
