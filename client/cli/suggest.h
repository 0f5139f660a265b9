// "Did you mean": the nearest of a few words.
#pragma once

#include <span>
#include <string_view>

namespace kvd::cli {

// The candidate that `word` is most likely a slip of: by insertions, deletions, replacements and
// exchanged neighbours (Damerau-Levenshtein, optimal string alignment), at most one for three
// characters of `word`, and at least one; more than one only if the first character is right; or
// the only one that `word` begins. Empty if none.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace kvd::cli
