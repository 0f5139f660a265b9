// A key and its value, as files and pipes carry them.
#pragma once

#include <cstdint>
#include <string>

namespace kvd::cli {

// What an item has besides them.
struct ItemTraits {
  int64_t expiry_unix_us = 0;  // 0: never
  uint32_t user_flags = 0;

  bool operator==(const ItemTraits&) const = default;
};

struct Item {
  std::string key;
  std::string value;
  ItemTraits traits;
};

}  // namespace kvd::cli
