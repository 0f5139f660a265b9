#include "server/store/page_allocator.h"

#include <map>
#include <vector>

#include "common/base/random.h"
#include "common/base/units.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

constexpr RegionOffset kBegin{8192};
constexpr RegionOffset kEnd{16 * kMiB};

uint64_t Pages(uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

TEST_CASE("PageAllocator: segments come from the low end, pages from the high end") {
  PageAllocator pages(kBegin, kEnd);
  REQUIRE(pages.AllocateSegment() == RegionOffset{1 * kMiB});
  REQUIRE(pages.AllocateSegment() == RegionOffset{2 * kMiB});
  REQUIRE(pages.Allocate(1 * kMiB + 1) == RegionOffset{15 * kMiB - kPageBytes});
  // A small run fits below the first segment, where it costs no long run anything.
  REQUIRE(pages.Allocate(1) == RegionOffset{1 * kMiB - kPageBytes});
  KVD_REQUIRE_OK(pages.CheckInvariants());
}

TEST_CASE("PageAllocator: says how far a free run goes from a page, on and back") {
  PageAllocator pages(kBegin, kEnd);
  const RegionOffset taken = *pages.Allocate(kPageBytes);  // the last page
  CHECK(pages.FreeBytesFrom(RegionOffset{0}) == 0);
  CHECK(pages.FreeBytesFrom(kBegin) == ToBytes(taken) - ToBytes(kBegin));
  CHECK(pages.FreeBytesFrom(kBegin + kPageBytes) == ToBytes(taken) - ToBytes(kBegin) - kPageBytes);
  CHECK(pages.FreeBytesFrom(taken) == 0);
  CHECK(pages.FreeBytesFrom(kEnd) == 0);
  CHECK(pages.FreeBytesBefore(kBegin) == 0);
  CHECK(pages.FreeBytesBefore(kBegin + kPageBytes) == kPageBytes);
  CHECK(pages.FreeBytesBefore(taken) == ToBytes(taken) - ToBytes(kBegin));
  CHECK(pages.FreeBytesBefore(kEnd) == 0);
}

TEST_CASE("PageAllocator: each zone is given its own memory first, then others'") {
  PageAllocator pages(kBegin, kEnd, 4);
  CHECK(pages.IsIn(kBegin, 0));
  CHECK_FALSE(pages.IsIn(RegionOffset{0}, 0));
  CHECK_FALSE(pages.IsIn(RegionOffset{5 * kMiB}, 0));
  CHECK(pages.IsIn(RegionOffset{5 * kMiB}, 1));
  CHECK_FALSE(pages.IsIn(kEnd, 3));
  CHECK(pages.Allocate(kPageBytes, {.zone = 0}) == RegionOffset{5 * kMiB - kPageBytes});
  CHECK(pages.Allocate(kPageBytes, {.zone = 1}) == RegionOffset{9 * kMiB - kPageBytes});
  CHECK(pages.Allocate(kPageBytes, {.zone = 3}) == RegionOffset{16 * kMiB - kPageBytes});
  CHECK(pages.AllocateSegment({.zone = 2}) == RegionOffset{9 * kMiB});
  CHECK(pages.AllocateSegment({.zone = 3}) == RegionOffset{13 * kMiB});
  KVD_REQUIRE_OK(pages.CheckInvariants());
  CHECK_FALSE(pages.Allocate(3 * kMiB, {.zone = 3, .only = true}).has_value());
  // More than its own: of all runs the smallest that will do.
  CHECK(pages.Allocate(3 * kMiB, {.zone = 3}) == RegionOffset{10 * kMiB});
  CHECK(pages.AllocateSegment({.zone = 3}) == RegionOffset{14 * kMiB});
  CHECK_FALSE(pages.AllocateSegment({.zone = 3, .only = true}).has_value());
  CHECK(pages.AllocateSegment({.zone = 3}) == RegionOffset{1 * kMiB});
  KVD_REQUIRE_OK(pages.CheckInvariants());
}

TEST_CASE("PageAllocator: a segment is found outside of a run that is to stay free") {
  PageAllocator pages(kBegin, kEnd, 4);
  const RegionOffset end{3 * kMiB};
  CHECK(pages.AllocateSegmentOutside(RegionOffset{1 * kMiB}, end, 0) == end);
  pages.Free(end, kSegmentBytes);
  CHECK(pages.AllocateSegmentOutside(RegionOffset{2 * kMiB}, end, 0) == RegionOffset{1 * kMiB});
  CHECK(pages.AllocateSegmentOutside(RegionOffset{2 * kMiB + kPageBytes}, end, 0) == end);
  const RegionOffset zone_end = pages.ZoneEnd(0);
  while (pages.AllocateSegmentOutside(kBegin, end, 0)) continue;
  CHECK(pages.FreeBytesFrom(RegionOffset{2 * kMiB}) == kMiB);
  CHECK(pages.FreeBytesFrom(zone_end) != 0);
  KVD_REQUIRE_OK(pages.CheckInvariants());
}

TEST_CASE("PageAllocator: a free run goes on from zone to zone") {
  PageAllocator pages(kBegin, kEnd, 4);
  const uint64_t all = ToBytes(kEnd) - ToBytes(kBegin);
  const RegionOffset at = *pages.Allocate(all, {.zone = 2});
  CHECK(at == kBegin);
  CHECK_FALSE(pages.Allocate(1, {.zone = 2}).has_value());
  pages.Free(at, all);
  KVD_REQUIRE_OK(pages.CheckInvariants());
  CHECK(pages.longest_free_run_bytes() == all);
}

TEST_CASE("PageAllocator: what is freed coalesces on both sides, in any order") {
  PageAllocator pages(kBegin, kEnd);
  const uint64_t all = pages.free_bytes();
  REQUIRE(all == ToBytes(kEnd) - ToBytes(kBegin));
  const RegionOffset a = *pages.Allocate(kPageBytes);
  const RegionOffset b = *pages.Allocate(2 * kPageBytes);
  const RegionOffset c = *pages.Allocate(3 * kPageBytes);
  REQUIRE(ToBytes(b) + 2 * kPageBytes == ToBytes(a));
  REQUIRE(ToBytes(c) + 3 * kPageBytes == ToBytes(b));
  pages.Free(a, kPageBytes);
  pages.Free(c, 3 * kPageBytes);
  KVD_REQUIRE_OK(pages.CheckInvariants());
  REQUIRE(pages.longest_free_run_bytes() == all - 3 * kPageBytes);
  pages.Free(b, 2 * kPageBytes);
  KVD_REQUIRE_OK(pages.CheckInvariants());
  REQUIRE(pages.longest_free_run_bytes() == all);
  REQUIRE(pages.free_bytes() == all);
}

TEST_CASE("PageAllocator: takes the smallest run that fits") {
  PageAllocator pages(kBegin, kEnd);
  const RegionOffset wide = *pages.Allocate(5 * kPageBytes);
  REQUIRE(pages.Allocate(kPageBytes).has_value());  // keeps the runs apart
  const RegionOffset narrow = *pages.Allocate(2 * kPageBytes);
  REQUIRE(pages.Allocate(kPageBytes).has_value());
  pages.Free(wide, 5 * kPageBytes);
  pages.Free(narrow, 2 * kPageBytes);
  REQUIRE(pages.Allocate(2 * kPageBytes) == narrow);
  REQUIRE(pages.Allocate(4 * kPageBytes) == wide + kPageBytes);
}

TEST_CASE("PageAllocator: declines what cannot be had and changes nothing") {
  PageAllocator pages(kBegin, kEnd);
  const uint64_t all = pages.free_bytes();
  REQUIRE_FALSE(pages.Allocate(0).has_value());
  REQUIRE_FALSE(pages.Allocate(all + 1).has_value());
  REQUIRE_FALSE(pages.Allocate(UINT64_MAX).has_value());
  REQUIRE(pages.free_bytes() == all);
  REQUIRE(pages.Allocate(all) == kBegin);
  REQUIRE(pages.free_bytes() == 0);
  REQUIRE_FALSE(pages.Allocate(1).has_value());
  REQUIRE_FALSE(pages.AllocateSegment().has_value());
  pages.Free(kBegin + kPageBytes,
             kSegmentBytes);  // long enough for a segment, but none lies in it aligned
  REQUIRE_FALSE(pages.AllocateSegment().has_value());
  KVD_REQUIRE_OK(pages.CheckInvariants());
}

TEST_CASE("PageAllocator: random use never gives a page twice and loses none") {
  Random random(kvd::test::Seed());
  const auto zones = static_cast<uint32_t>(random.Between(1, 5));
  CAPTURE(zones);
  PageAllocator pages(kBegin, kEnd, zones);
  const uint64_t all = pages.free_bytes();
  std::vector<bool> taken(ToBytes(kEnd) / kPageBytes, false);
  std::vector<std::pair<RegionOffset, uint64_t>> held;
  const auto set = [&](RegionOffset at, uint64_t bytes, bool value) {
    for (uint64_t i = 0; i < Pages(bytes); ++i) {
      const uint64_t page = ToBytes(at) / kPageBytes + i;
      if (taken[page] == value) return false;
      taken[page] = value;
    }
    return true;
  };
  for (int step = 0; step < 20'000; ++step) {
    if (!held.empty() && random.OneIn(2)) {
      const size_t i = random.Uniform(held.size());
      REQUIRE(set(held[i].first, held[i].second, false));
      pages.Free(held[i].first, held[i].second);
      held[i] = held.back();
      held.pop_back();
    } else {
      const bool segment = random.OneIn(20);
      const uint64_t bytes =
          segment ? kSegmentBytes : random.Between(1, random.OneIn(10) ? 2 * kMiB : 20'000);
      const PageAllocator::From from{.zone = static_cast<uint32_t>(random.Uniform(zones)),
                                     .only = random.OneIn(2)};
      const auto at = segment ? pages.AllocateSegment(from) : pages.Allocate(bytes, from);
      if (!at) continue;
      REQUIRE(ToBytes(*at) % (segment ? kSegmentBytes : kPageBytes) == 0);
      REQUIRE(*at >= kBegin);
      REQUIRE(set(*at, bytes, true));
      held.emplace_back(*at, bytes);
    }
    if (step % 500 == 0) KVD_REQUIRE_OK(pages.CheckInvariants());
  }
  for (const auto& [at, bytes] : held) pages.Free(at, bytes);
  KVD_REQUIRE_OK(pages.CheckInvariants());
  REQUIRE(pages.longest_free_run_bytes() == all);
}

}  // namespace
}  // namespace kvd
