#include <set>
#include <string>

#include "client/bench/kvbench/bench_key.h"
#include "client/bench/kvbench/bench_value.h"
#include "tests/support/test.h"

namespace kvd::bench {
namespace {

TEST_CASE("KeyWriter: no two numbers have the same key") {
  for (const size_t size : {1, 2, 3}) {
    const KeyWriter keys(size);
    std::set<std::string> seen;
    for (uint64_t n = 0; n < KeyWriter::CountMax(size); ++n) seen.insert(keys.Text(n));
    CHECK(seen.size() == KeyWriter::CountMax(size));
  }
  const KeyWriter keys(8);
  std::set<std::string> seen;
  for (uint64_t n = 0; n < 100'000; ++n) {
    seen.insert(keys.Text(n));
    seen.insert(keys.Text(KeyWriter::CountMax(8) - 1 - n));
  }
  CHECK(seen.size() == 200'000);
}

TEST_CASE("KeyWriter: keys are printable words of the length that was asked for") {
  for (const size_t size : {1, 7, 8, 9, 23, 4096}) {
    const std::string key = KeyWriter(size).Text(5);
    CHECK(key.size() == size);
    CHECK(key.find_first_not_of(
              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == key.npos);
  }
}

std::string Value(uint64_t key, uint64_t stamp, size_t size) {
  std::string value(size, '\0');
  FillValue(key, stamp, value.data(), size);
  return value;
}

TEST_CASE("BenchValue: belongs to its key, whatever its length and stamp") {
  for (size_t size = 1; size < 100; ++size) {
    CAPTURE(size);
    for (const Verify verify : {Verify::kFull, Verify::kHead, Verify::kOff}) {
      CHECK(BelongsToKey(7, Value(7, 123456789 * size, size), verify));
    }
  }
  CHECK(Value(7, 1, 64) != Value(7, 2, 64));
}

TEST_CASE("BenchValue: a value of another key, or of another length, does not belong") {
  for (const size_t size : {4, 8, 15, 16, 17, 64, 4099}) {
    CAPTURE(size);
    CHECK_FALSE(BelongsToKey(8, Value(7, 1, size)));
    CHECK_FALSE(BelongsToKey(8, Value(7, 1, size), Verify::kHead));
    CHECK_FALSE(BelongsToKey(7, Value(7, 1, size) + "x"));
    CHECK_FALSE(BelongsToKey(7, Value(7, 1, size).substr(0, size - 1)));
    CHECK(BelongsToKey(8, Value(7, 1, size), Verify::kOff));
  }
}

TEST_CASE("BenchValue: a byte that changed is noticed, wherever it is") {
  for (const size_t size : {9, 16, 23, 64, 131}) {
    for (size_t at = 0; at < size; ++at) {
      CAPTURE(size, at);
      std::string value = Value(7, 99, size);
      value[at] = static_cast<char>(value[at] ^ 0x20);
      CHECK_FALSE(BelongsToKey(7, value));
      if (size >= kStampedBytesMin && at < kStampedBytesMin)
        CHECK_FALSE(BelongsToKey(7, value, Verify::kHead));
    }
  }
}

TEST_CASE("BenchValue: a mixture of two writes of one key is noticed, wherever the seam is") {
  const std::string one = Value(7, 1, 128);
  const std::string other = Value(7, 2, 128);
  for (size_t seam = 1; seam < 128; ++seam) {
    const std::string torn = one.substr(0, seam) + other.substr(seam);
    if (torn == one || torn == other) continue;
    CAPTURE(seam);
    CHECK_FALSE(BelongsToKey(7, torn));
  }
}

}  // namespace
}  // namespace kvd::bench
