// The cheapest stretch of pages for a long run.
#include "server/store/window_search.h"

#include <algorithm>
#include <vector>

#include "common/base/random.h"
#include "common/base/units.h"
#include "common/layout/units.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using Kind = MemoryPiece::Kind;

// Side by side, from 1 MiB on.
class Row {
 public:
  Row& Add(Kind kind, uint64_t bytes, double heat = 0) {
    pieces_.push_back({.begin = end_, .bytes = bytes, .kind = kind, .heat = heat});
    end_ += bytes;
    return *this;
  }
  const std::vector<MemoryPiece>& pieces() const { return pieces_; }

 private:
  uint64_t end_ = kMiB;
  std::vector<MemoryPiece> pieces_;
};

std::optional<Window> Find(const Row& row, const WindowTerms& terms) {
  return CheapestWindow(row.pieces(), terms);
}

TEST_CASE("WindowSearch: of the heap's pages the coldest go, with those that are free") {
  Row row;
  row.Add(Kind::kHeap, kMiB, 5).Add(Kind::kFree, kMiB / 2).Add(Kind::kHeap, kMiB, 1);
  row.Add(Kind::kHeap, kMiB / 2, 2).Add(Kind::kHeap, 4 * kMiB, 4);
  const auto window = Find(row, {.bytes = kMiB + kMiB / 2});
  REQUIRE(window.has_value());
  CHECK(window->first == 1);
  CHECK(window->last == 3);
  CHECK(window->heat == 1);
  CHECK(window->squeezes == 0);
  CHECK(Find(row, {.bytes = 3 * kMiB})->first == 4);
  CHECK(Find(row, {.bytes = 4 * kMiB})->first == 4);
  CHECK_FALSE(Find(row, {.bytes = 8 * kMiB}).has_value());
}

TEST_CASE("WindowSearch: nothing reaches across an obstacle or what is not surveyed") {
  Row row;
  row.Add(Kind::kFree, kMiB).Add(Kind::kObstacle, kPageBytes).Add(Kind::kFree, kMiB);
  CHECK_FALSE(Find(row, {.bytes = kMiB + kPageBytes}).has_value());
  CHECK(Find(row, {.bytes = kMiB})->first == 0);
  std::vector<MemoryPiece> pieces = Row().Add(Kind::kFree, kMiB).pieces();
  pieces.push_back({.begin = 3 * kMiB, .bytes = kMiB, .kind = Kind::kFree});
  CHECK_FALSE(CheapestWindow(pieces, {.bytes = 2 * kMiB}).has_value());
}

TEST_CASE("WindowSearch: the index gives up segments only for those that no free one takes in") {
  Row row;
  row.Add(Kind::kIndex, kMiB).Add(Kind::kIndex, kMiB).Add(Kind::kHeap, 2 * kMiB, 100);
  row.Add(Kind::kObstacle, kMiB).Add(Kind::kFree, kMiB);
  const WindowTerms terms{.bytes = 2 * kMiB, .heat_of_squeeze = 40, .squeezes_max = 1};
  const auto window = Find(row, terms);
  REQUIRE(window.has_value());
  CHECK(window->first == 0);
  CHECK(window->squeezes == 1);
  CHECK(window->heat == 40);
  CHECK(Find(row, {.bytes = 2 * kMiB, .heat_of_squeeze = 200, .squeezes_max = 1})->heat == 100);
  // Free pages that hold no whole segment are no place for one, nor are those of the window.
  Row without;
  without.Add(Kind::kIndex, kMiB).Add(Kind::kFree, kMiB).Add(Kind::kObstacle, kMiB / 2);
  without.Add(Kind::kFree, kMiB);
  CHECK_FALSE(Find(without, {.bytes = 2 * kMiB}).has_value());
  CHECK(Find(without, {.bytes = 2 * kMiB, .squeezes_max = 1})->squeezes == 1);
}

TEST_CASE("WindowSearch: none is cheaper, for random rows") {
  Random random(test::Seed());
  for (int round = 0; round < 500; ++round) {
    Row row;
    const uint64_t pieces = random.Between(1, 40);
    for (uint64_t i = 0; i < pieces; ++i) {
      const auto kind = static_cast<Kind>(random.OneIn(10) ? 3 : random.Uniform(3));
      const uint64_t bytes = kind == Kind::kIndex ? kMiB : random.Between(1, 300) * kPageBytes;
      row.Add(kind, bytes, kind == Kind::kHeap ? static_cast<double>(random.Uniform(1000)) : 0);
    }
    const WindowTerms terms{.bytes = random.Between(1, 1500) * kPageBytes,
                            .heat_of_squeeze = static_cast<double>(random.Uniform(1000)),
                            .squeezes_max = static_cast<uint32_t>(random.Uniform(4))};
    const auto free_segments = [&](const MemoryPiece& piece) -> uint64_t {
      if (piece.kind != Kind::kFree) return 0;
      uint64_t count = 0;
      for (uint64_t at = 0; at + kMiB <= piece.end(); at += kMiB) count += at >= piece.begin;
      return count;
    };
    std::optional<double> least;
    for (size_t first = 0; first < row.pieces().size(); ++first) {
      uint64_t bytes = 0, in_index = 0, homes = 0;
      for (const MemoryPiece& piece : row.pieces()) homes += free_segments(piece);
      double heat = 0;
      for (size_t i = first; i < row.pieces().size() && bytes < terms.bytes; ++i) {
        const MemoryPiece& piece = row.pieces()[i];
        if (piece.kind == Kind::kObstacle) break;
        bytes += piece.bytes;
        heat += piece.heat;
        homes -= free_segments(piece);
        if (piece.kind == Kind::kIndex) ++in_index;
      }
      const uint64_t squeezes = in_index - std::min(in_index, homes);
      heat += static_cast<double>(squeezes) * terms.heat_of_squeeze;
      if (bytes < terms.bytes || squeezes > terms.squeezes_max) continue;
      if (!least || heat < *least) least = heat;
    }
    const auto window = Find(row, terms);
    REQUIRE(window.has_value() == least.has_value());
    if (window) REQUIRE(window->heat == Approx(*least).margin(1e-6));
  }
}

}  // namespace
}  // namespace kvd
