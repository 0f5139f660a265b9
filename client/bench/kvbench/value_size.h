// How long values are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/random.h"

namespace kvd::bench {

// A length, lengths that are all equally likely, or a list of either with weights.
class ValueSizes {
 public:
  static ValueSizes Fixed(uint64_t bytes);

  uint64_t Draw(Random& random) const;
  uint64_t min() const;
  uint64_t max() const;
  double Mean() const;
  // Some sizes that stand for all, with how many of each there are in one: of each range `steps`,
  // evenly spread, or all that there are.
  std::vector<std::pair<uint64_t, double>> Spread(uint64_t steps) const;
  const std::string& text() const { return text_; }  // as it was parsed

 private:
  friend absl::StatusOr<ValueSizes> ParseValueSizes(std::string_view text);

  struct Part {
    uint64_t low;
    uint64_t high;
    uint64_t weight;
  };

  std::vector<Part> parts_;
  uint64_t weights_ = 0;
  std::string text_;
};

// "64", "64..4096", "64:70,1k..4k:30" (a weight behind each); sizes in bytes or with a suffix k or
// m, from 1 byte to 1 GiB. InvalidArgument names the text and what is allowed.
absl::StatusOr<ValueSizes> ParseValueSizes(std::string_view text);

}  // namespace kvd::bench
