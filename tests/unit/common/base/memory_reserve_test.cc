// The reserve by itself. (That kvd lives by it: tests/rigs/out_of_memory_test.)
#include "common/base/memory_reserve.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct alignas(MemoryReserve::kAlignment) Memory {
  std::byte bytes[64 << 10];
};

}  // namespace

TEST_CASE("Memory reserve: what is taken is nobody else's, and all comes back in one piece") {
  const auto memory = std::make_unique<Memory>();
  MemoryReserve reserve(memory->bytes);
  Random random(Seed());
  std::vector<std::pair<unsigned char*, size_t>> taken;
  uint64_t refused = 0;
  const auto give_back = [&](size_t at) {
    const auto [bytes, count] = taken[at];
    const auto mark = static_cast<unsigned char>(count);
    for (size_t i = 0; i < count; ++i) REQUIRE(bytes[i] == mark);
    reserve.GiveBack(bytes);
    taken[at] = taken.back();
    taken.pop_back();
  };
  for (int i = 0; i < 20'000; ++i) {
    if (!taken.empty() && random.OneIn(2)) {
      give_back(random.Uniform(taken.size()));
      continue;
    }
    const size_t count = random.OneIn(20) ? random.Between(1, 16'000) : random.Between(1, 200);
    void* const at = reserve.Take(count);
    if (at == nullptr) {
      ++refused;
      continue;
    }
    REQUIRE(reserve.Owns(at));
    REQUIRE(reinterpret_cast<uintptr_t>(at) % MemoryReserve::kAlignment == 0);
    std::memset(at, static_cast<int>(count & 0xff), count);
    taken.emplace_back(static_cast<unsigned char*>(at), count);
  }
  CHECK(refused > 0);
  while (!taken.empty()) give_back(taken.size() - 1);
  // Three of the largest fit only if nothing is left in between.
  for (int i = 0; i < 3; ++i) CHECK(reserve.Take(MemoryReserve::kPieceBytesMax) != nullptr);
}

TEST_CASE("Memory reserve: refuses what is too large or does not fit, and owns nothing else") {
  const auto memory = std::make_unique<Memory>();
  MemoryReserve reserve(memory->bytes);
  CHECK(reserve.Take(MemoryReserve::kPieceBytesMax + 1) == nullptr);
  int fitted = 0;
  while (reserve.Take(MemoryReserve::kPieceBytesMax) != nullptr) ++fitted;
  CHECK(fitted == 3);
  CHECK_FALSE(reserve.Owns(memory->bytes + sizeof(Memory)));
  CHECK_FALSE(reserve.Owns(nullptr));
  MemoryReserve none({});
  CHECK(none.Take(1) == nullptr);
}

TEST_CASE("Memory reserve: is denied for work that can be given up, until that is over") {
  using memory_reserve_internal::denied;
  CHECK_FALSE(denied);
  const bool inner = WithoutReserve([] {
    CHECK(denied);
    WithReserve([] { CHECK_FALSE(denied); });
    return denied;
  });
  CHECK(inner);
  CHECK_THROWS_AS(WithoutReserve([] { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK_FALSE(denied);
}

}  // namespace kvd::test
