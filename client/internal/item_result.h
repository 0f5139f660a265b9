// From an item that was judged current to what the caller of a GET gets.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "client/kv_client.h"
#include "common/protocol/judge_item.h"

namespace kvd {

// A value of the same length as the last one takes no call into the string.
inline void AssignValue(std::string_view value, std::string& to) {
  if (to.size() == value.size()) {
    std::memcpy(to.data(), value.data(), value.size());
  } else {
    to.assign(value);
  }
}

inline ItemInfo InfoOf(const ItemView& item) {
  return {item.version, item.user_flags, static_cast<int64_t>(item.expiry_unix_us)};
}

}  // namespace kvd
