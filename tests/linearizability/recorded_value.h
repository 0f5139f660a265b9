// What recording clients write under a key: bytes in which every write can be recognized, so that
// what is read names the write that made it, or is known to be corrupt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tests/linearizability/operation.h"

namespace kvd::test {

// What a key is used for.
enum class KeyRole : uint8_t {
  kEightBytes,  // all values of 8 bytes: overwritten in place
  kOneSize,     // all of 1,000 bytes: overwritten in place
  kSmall,       // 8 to 4,096 bytes: now in place, now elsewhere
  kLarge,       // 4 to 16 KiB: always elsewhere
  kMoving,      // all of 5,000 bytes: always elsewhere, in places that others have just left
  kNumber,
  kAppended,   // pieces, put one behind the other
  kPrepended,  // the same from the other side
  kCold,       // 8 to 1,500 bytes, seldom written
};
inline constexpr uint64_t kHotRoles = 8;

// Some of their items have an expiry. Most of kCold's come to it; of the others few do before they
// are overwritten.
constexpr bool MayExpire(KeyRole role) { return role == KeyRole::kCold || role == KeyRole::kSmall; }

// Keys 0 to `hot_keys` - 1 take turns in the roles but kCold, the others are kCold.
constexpr KeyRole RoleOf(uint64_t key, uint64_t hot_keys) {
  return key < hot_keys ? static_cast<KeyRole>(key % kHotRoles) : KeyRole::kCold;
}

std::string RecordedKey(uint64_t key);

// The bytes for what `value`, a blob named by its writer or a number, stands for. In the role of
// kAppended or kPrepended they are one piece.
void EncodeValue(KeyRole role, uint64_t key, Value value, std::string& bytes);

// What was read; Kind::kCorrupt unless it is, byte for byte, something that may be there.
Value DecodeValue(KeyRole role, uint64_t key, std::string_view bytes);

}  // namespace kvd::test
