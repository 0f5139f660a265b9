// How full the index is to be: the two numbers from which memory and READs per GET follow.
#pragma once

#include <cstdint>

namespace kvd {

// A bucket more is wanted when the mean bucket is this full. In the middle of a doubling the
// buckets that are not split yet have four thirds of the mean load and the others two thirds, which
// is where most items leave their bucket. store_benchmark prints the READs and the memory that
// follow from these two numbers.
inline constexpr uint64_t kLocalSpacePercentMax =
    83;  // of local space, asked for by items that may lie there
inline constexpr uint64_t kSlotsPerHundredBucketsMax = 950;  // of 16 slots each

}  // namespace kvd
