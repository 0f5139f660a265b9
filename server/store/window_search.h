// Which stretch of pages costs least to be cleared, for a run that is longer than a segment.
//
// Memory is a row of pieces: free pages, pages of the heap, segments of the index, and what cannot
// go. What lies in a piece of the heap is evicted; its heat, what its bytes would lose in hits, is
// that. A segment of the index is moved out of the way, to a free segment elsewhere; where there is
// none, the index first has to give one back, the last, whose heat is what its buckets lose. So it
// does not matter where in the index a segment of the window is, and a window takes no more of the
// index than lies in it.
//
// The cheapest window begins where a piece does: any other takes no fewer pieces than the one that
// begins with its first. So one pass with two ends finds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace kvd {

struct MemoryPiece {
  enum class Kind : uint8_t { kFree, kHeap, kIndex, kObstacle };

  uint64_t begin = 0;
  uint64_t bytes = 0;
  Kind kind = Kind::kObstacle;
  double heat = 0;  // kHeap

  uint64_t end() const { return begin + bytes; }
};

struct WindowTerms {
  uint64_t bytes = 0;          // how long it has to be, at least one
  double heat_of_squeeze = 0;  // of a segment that the index gives back
  uint32_t squeezes_max = 0;   // how many it can give back
};

// Pieces [first, last) are to be cleared.
struct Window {
  size_t first = 0;
  size_t last = 0;
  uint32_t squeezes = 0;
  double heat = 0;
};

// nullopt: in every stretch that is long enough lies an obstacle, or more of the index than it can
// do without. `pieces` are in order of address; what lies between two of them is an obstacle.
std::optional<Window> CheapestWindow(std::span<const MemoryPiece> pieces, const WindowTerms& terms);

}  // namespace kvd
