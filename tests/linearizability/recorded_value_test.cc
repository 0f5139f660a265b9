// Values that recording clients write name their write, and nothing else is taken for one.
#include "tests/linearizability/recorded_value.h"

#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr KeyRole kPlain[] = {KeyRole::kEightBytes, KeyRole::kOneSize, KeyRole::kSmall,
                              KeyRole::kLarge,      KeyRole::kMoving,  KeyRole::kCold};

}  // namespace

TEST_CASE("Recorded values: what is written is what is read") {
  std::string bytes;
  for (const KeyRole role : kPlain) {
    for (uint64_t name = 1; name < 50; ++name) {
      EncodeValue(role, 7, Blob(name), bytes);
      REQUIRE(DecodeValue(role, 7, bytes) == Blob(name));
    }
  }
  EncodeValue(KeyRole::kNumber, 7, Number(-12), bytes);
  REQUIRE(bytes == "-12");
  REQUIRE(DecodeValue(KeyRole::kNumber, 7, bytes) == Number(-12));
}

TEST_CASE("Recorded values: a changed byte, another length and another key are seen") {
  Random random(Seed());
  std::string bytes;
  for (const KeyRole role : kPlain) {
    if (role == KeyRole::kEightBytes) continue;  // no room for more than the name
    for (uint64_t name = 1; name < 50; ++name) {
      do {
        EncodeValue(role, 7, Blob(name += 100), bytes);
      } while (bytes.size() < 24);
      REQUIRE(DecodeValue(role, 8, bytes).kind == Value::Kind::kCorrupt);
      REQUIRE(DecodeValue(role, 7, bytes + "x").kind == Value::Kind::kCorrupt);
      std::string changed = bytes;
      changed[random.Uniform(bytes.size())] ^= 1;
      REQUIRE(DecodeValue(role, 7, changed).kind == Value::Kind::kCorrupt);
    }
  }
  REQUIRE(DecodeValue(KeyRole::kSmall, 7, "short").kind == Value::Kind::kCorrupt);
  REQUIRE(DecodeValue(KeyRole::kNumber, 7, "12x").kind == Value::Kind::kCorrupt);
  REQUIRE(DecodeValue(KeyRole::kNumber, 7, "").kind == Value::Kind::kCorrupt);
}

TEST_CASE("Recorded values: pieces tell in which order they were put there") {
  std::vector<std::string> pieces(3);
  for (uint64_t i = 0; i < 3; ++i) EncodeValue(KeyRole::kAppended, 7, Blob(i + 1), pieces[i]);
  REQUIRE(DecodeValue(KeyRole::kAppended, 7, pieces[0]) == Blob(1));
  REQUIRE(DecodeValue(KeyRole::kAppended, 7, pieces[0] + pieces[1] + pieces[2]) ==
          Appended(Appended(Blob(1), Blob(2)), Blob(3)));
  REQUIRE(DecodeValue(KeyRole::kPrepended, 7, pieces[2] + pieces[1] + pieces[0]) ==
          Prepended(Blob(3), Prepended(Blob(2), Blob(1))));
  REQUIRE(DecodeValue(KeyRole::kAppended, 7, pieces[0] + "x").kind == Value::Kind::kCorrupt);
  REQUIRE(DecodeValue(KeyRole::kAppended, 8, pieces[0]).kind == Value::Kind::kCorrupt);
  REQUIRE(DecodeValue(KeyRole::kAppended, 7, "").kind == Value::Kind::kCorrupt);
}

}  // namespace kvd::test
