#include "server/store/held_items.h"

#include <vector>

#include "tests/support/test.h"

namespace kvd {
namespace {

const Slot kA = PackSlot(1, 64, RegionOffset{4096});
const Slot kB = PackSlot(2, 128, RegionOffset{8192});

TEST_CASE("HeldItems: memory of an item that left is free with its last holder") {
  HeldItems held;
  held.Hold(kA);
  held.Hold(kA);
  REQUIRE(held.Leave(kA));
  REQUIRE(held.Release(kA) == std::nullopt);
  REQUIRE(held.Contains(LocationOf(kA)));
  REQUIRE(held.Release(kA) == kA);
  REQUIRE(held.empty());
}

TEST_CASE("HeldItems: an item that is still in the index is not freed by its release") {
  HeldItems held;
  held.Hold(kA);
  REQUIRE(held.Release(kA) == std::nullopt);
  REQUIRE(held.empty());
}

TEST_CASE("HeldItems: what is not held leaves and is released without a trace") {
  HeldItems held;
  REQUIRE_FALSE(held.Leave(kA));
  REQUIRE(held.Release(kA) == std::nullopt);
  REQUIRE(held.empty());
}

TEST_CASE("HeldItems: those that left are listed by their place") {
  HeldItems held;
  held.Hold(kA);
  held.Hold(kB);
  REQUIRE(held.Leave(kB));
  std::vector<Slot> left;
  held.ForEachLeft(RegionOffset{0}, RegionOffset{8192}, [&](Slot slot) { left.push_back(slot); });
  REQUIRE(left.empty());
  held.ForEachLeft(RegionOffset{8192}, RegionOffset{8193},
                   [&](Slot slot) { left.push_back(slot); });
  REQUIRE(left == std::vector<Slot>{kB});
}

}  // namespace
}  // namespace kvd
