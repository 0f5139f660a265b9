#include "server/store/window_search.h"

#include <algorithm>

#include "common/layout/units.h"

namespace kvd {
namespace {

using Kind = MemoryPiece::Kind;

// Whole segments in a piece of free pages, to which others can be moved.
uint64_t FreeSegments(const MemoryPiece& piece) {
  if (piece.kind != Kind::kFree) return 0;
  const uint64_t first = (piece.begin + kSegmentBytes - 1) / kSegmentBytes;
  return std::max(piece.end() / kSegmentBytes, first) - first;
}

// What lies in a window, while pieces come in at its end and leave at its beginning.
struct Contents {
  uint64_t in_index = 0;
  uint64_t free_segments = 0;
  double heat = 0;

  void Add(const MemoryPiece& piece) {
    in_index += piece.kind == Kind::kIndex ? 1 : 0;
    free_segments += FreeSegments(piece);
    heat += piece.heat;
  }
  void Remove(const MemoryPiece& piece) {
    in_index -= piece.kind == Kind::kIndex ? 1 : 0;
    free_segments -= FreeSegments(piece);
    heat -= piece.heat;
  }
};

}  // namespace

std::optional<Window> CheapestWindow(std::span<const MemoryPiece> pieces,
                                     const WindowTerms& terms) {
  uint64_t free_segments = 0;
  for (const MemoryPiece& piece : pieces) free_segments += FreeSegments(piece);
  std::optional<Window> cheapest;
  Contents in_window;
  size_t first = 0;
  for (size_t last = 0; last < pieces.size(); ++last) {
    if (pieces[last].kind == Kind::kObstacle) {
      first = last + 1;
      in_window = {};
      continue;
    }
    if (first != last && pieces[last].begin != pieces[last - 1].end()) {
      first = last;
      in_window = {};
    }
    in_window.Add(pieces[last]);
    for (; pieces[last].end() - pieces[first].begin >= terms.bytes; ++first) {
      const uint64_t homes = free_segments - in_window.free_segments;
      const uint64_t squeezes = in_window.in_index - std::min(homes, in_window.in_index);
      const double heat = in_window.heat + static_cast<double>(squeezes) * terms.heat_of_squeeze;
      if (squeezes <= terms.squeezes_max && (!cheapest || heat < cheapest->heat)) {
        cheapest = {first, last + 1, static_cast<uint32_t>(squeezes), heat};
      }
      in_window.Remove(pieces[first]);
      if (first == last) {
        ++first;
        break;
      }
    }
  }
  return cheapest;
}

}  // namespace kvd
