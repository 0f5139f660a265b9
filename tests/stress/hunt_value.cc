#include "tests/stress/hunt_value.h"

#include <cstring>

#include "common/base/random.h"

namespace kvd::test {
namespace {

struct Stamp {
  uint64_t key;
  uint64_t generation;
  uint64_t bytes;
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
  MakeStampedValue(key, generation, BytesOf(key, generation), value);
}

std::optional<uint64_t> CertifyHuntValue(uint64_t key, std::string_view value) {
  const auto generation = CertifyStampedValue(key, value);
  if (!generation.has_value() || IsDelete(*generation)) return std::nullopt;
  if (BytesOf(key, *generation) != value.size()) return std::nullopt;
  return generation;
}

void MakeStampedValue(uint64_t key, uint64_t generation, size_t bytes, std::string& value) {
  value.resize(bytes);
  const Stamp stamp{key, generation, bytes};
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

std::optional<uint64_t> CertifyStampedValue(uint64_t key, std::string_view value) {
  Stamp stamp;
  if (value.size() < sizeof(stamp)) return std::nullopt;
  std::memcpy(&stamp, value.data(), sizeof(stamp));
  if (stamp.key != key || stamp.generation == 0 || stamp.bytes != value.size()) return std::nullopt;
  static thread_local std::string expected;
  MakeStampedValue(key, stamp.generation, stamp.bytes, expected);
  if (expected != value) return std::nullopt;
  return stamp.generation;
}

}  // namespace kvd::test
