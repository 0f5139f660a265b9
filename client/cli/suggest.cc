#include "client/cli/suggest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace kvd::cli {
namespace {

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t kWordBytesMax = 40;  // longer than any of ours: not a slip
  if (word.empty() || word.size() > kWordBytesMax) return {};
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view candidate : candidates) {
    const size_t distance = Distance(word, candidate);
    // Two slips in a short word make it another word, unless at least its beginning is right.
    if (distance > 1 && candidate[0] != word[0]) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (!best.empty()) return best;
  std::string_view begun;
  for (const std::string_view candidate : candidates) {
    if (!candidate.starts_with(word)) continue;
    if (!begun.empty()) return {};
    begun = candidate;
  }
  return begun;
}

}  // namespace kvd::cli
