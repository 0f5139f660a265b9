#include "tests/linearizability/recorded_value.h"

#include <charconv>
#include <cstring>

#include "common/base/hash.h"
#include "common/base/random.h"

namespace kvd::test {
namespace {

constexpr Value kCorrupt = {Value::Kind::kCorrupt, 0};
constexpr size_t kPieceBytes = 16;

uint64_t BytesOf(KeyRole role, Random& random) {
  switch (role) {
    case KeyRole::kEightBytes:
      return 8;
    case KeyRole::kOneSize:
      return 1000;
    case KeyRole::kSmall:
      return random.Between(8, 4096);
    case KeyRole::kMoving:
      return 5000;
    case KeyRole::kLarge:
      return random.Between(4096, 16384);
    default:
      return random.Between(8, 1500);
  }
}

// The writer's name, then bytes that follow from it and the key.
void EncodeBlob(KeyRole role, uint64_t key, uint64_t name, std::string& bytes) {
  Random random(Mix64(name) ^ key);
  bytes.resize(BytesOf(role, random));
  std::memcpy(bytes.data(), &name, sizeof(name));
  size_t at = sizeof(name);
  for (; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
  for (; at < bytes.size(); ++at) bytes[at] = static_cast<char>(name + at);
}

uint64_t WordAt(std::string_view bytes, size_t at) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

uint64_t SealOf(uint64_t key, uint64_t name) { return Mix64(name ^ Mix64(key)); }

Value DecodePieces(KeyRole role, uint64_t key, std::string_view bytes) {
  if (bytes.empty() || bytes.size() % kPieceBytes != 0) return kCorrupt;
  Value value;
  const size_t pieces = bytes.size() / kPieceBytes;
  for (size_t i = 0; i < pieces; ++i) {
    // From the first that was put there to the last.
    const size_t at = kPieceBytes * (role == KeyRole::kAppended ? i : pieces - 1 - i);
    const uint64_t name = WordAt(bytes, at);
    if (WordAt(bytes, at + sizeof(name)) != SealOf(key, name)) return kCorrupt;
    if (i == 0) {
      value = Blob(name);
    } else if (role == KeyRole::kAppended) {
      value = Appended(value, Blob(name));
    } else {
      value = Prepended(Blob(name), value);
    }
  }
  return value;
}

}  // namespace

std::string RecordedKey(uint64_t key) { return "recorded:" + std::to_string(key); }

void EncodeValue(KeyRole role, uint64_t key, Value value, std::string& bytes) {
  if (value.kind == Value::Kind::kNumber) {
    bytes = std::to_string(static_cast<int64_t>(value.word));
  } else if (role == KeyRole::kAppended || role == KeyRole::kPrepended) {
    const uint64_t seal = SealOf(key, value.word);
    bytes.resize(kPieceBytes);
    std::memcpy(bytes.data(), &value.word, sizeof(value.word));
    std::memcpy(bytes.data() + sizeof(value.word), &seal, sizeof(seal));
  } else {
    EncodeBlob(role, key, value.word, bytes);
  }
}

Value DecodeValue(KeyRole role, uint64_t key, std::string_view bytes) {
  if (role == KeyRole::kNumber) {
    int64_t number = 0;
    const char* const end = bytes.data() + bytes.size();
    const auto [stopped, error] = std::from_chars(bytes.data(), end, number);
    return error == std::errc() && stopped == end ? Number(number) : kCorrupt;
  }
  if (role == KeyRole::kAppended || role == KeyRole::kPrepended) {
    return DecodePieces(role, key, bytes);
  }
  if (bytes.size() < sizeof(uint64_t)) return kCorrupt;
  const Value value = Blob(WordAt(bytes, 0));
  static thread_local std::string expected;
  EncodeBlob(role, key, value.word, expected);
  return expected == bytes ? value : kCorrupt;
}

}  // namespace kvd::test
