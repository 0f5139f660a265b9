#include "tests/stress/hunt_value.h"

#include <cstring>

#include "common/base/random.h"

namespace kvd::test {
namespace {

struct Stamp {
  uint64_t key;
  uint64_t generation;
};

uint64_t BytesOf(uint64_t key, uint64_t generation) {
  Random random(key * 1'000'003 + generation);
  switch (key % 4) {
    case 0:
      return 64;
    case 1:
      return 2000;
    case 2:
      return random.Between(sizeof(Stamp), 4000);
    default:
      return random.Between(sizeof(Stamp), 131072);
  }
}

}  // namespace

std::string HuntKey(uint64_t key) { return "hunt:" + std::to_string(key); }

void MakeHuntValue(uint64_t key, uint64_t generation, std::string& value) {
  value.resize(BytesOf(key, generation));
  const Stamp stamp{key, generation};
  std::memcpy(value.data(), &stamp, sizeof(stamp));
  // Every word differs from the same word of every other generation.
  Random random(generation << 20 ^ key);
  size_t at = sizeof(stamp);
  for (; at + sizeof(uint64_t) <= value.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(value.data() + at, &word, sizeof(word));
  }
  for (; at < value.size(); ++at) value[at] = static_cast<char>(generation);
}

std::optional<uint64_t> CertifyHuntValue(uint64_t key, std::string_view value) {
  Stamp stamp;
  if (value.size() < sizeof(stamp)) return std::nullopt;
  std::memcpy(&stamp, value.data(), sizeof(stamp));
  if (stamp.key != key || stamp.generation == 0 || IsDelete(stamp.generation)) return std::nullopt;
  if (BytesOf(key, stamp.generation) != value.size()) return std::nullopt;
  static thread_local std::string expected;
  MakeHuntValue(key, stamp.generation, expected);
  if (expected != value) return std::nullopt;
  return stamp.generation;
}

}  // namespace kvd::test
