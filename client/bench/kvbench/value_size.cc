#include "client/bench/kvbench/value_size.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::bench {
namespace {

constexpr uint64_t kWeightMax = 1'000'000;

std::optional<uint64_t> SizeOf(std::string_view text) {
  const absl::StatusOr<uint64_t> size = ParseBytes(text);
  if (!size.ok() || *size == 0 || *size > kGiB) return std::nullopt;
  return *size;
}

}  // namespace

ValueSizes ValueSizes::Fixed(uint64_t bytes) {
  ValueSizes sizes;
  sizes.parts_.push_back({bytes, bytes, 1});
  sizes.weights_ = 1;
  sizes.text_ = absl::StrCat(bytes);
  return sizes;
}

uint64_t ValueSizes::Draw(Random& random) const {
  const Part* part = parts_.data();
  if (parts_.size() > 1) {
    for (uint64_t left = random.Uniform(weights_); left >= part->weight; ++part)
      left -= part->weight;
  }
  return part->low == part->high ? part->low : random.Between(part->low, part->high);
}

uint64_t ValueSizes::min() const {
  return std::min_element(parts_.begin(), parts_.end(),
                          [](const Part& a, const Part& b) { return a.low < b.low; })
      ->low;
}

uint64_t ValueSizes::max() const {
  return std::max_element(parts_.begin(), parts_.end(),
                          [](const Part& a, const Part& b) { return a.high < b.high; })
      ->high;
}

double ValueSizes::Mean() const {
  double sum = 0;
  for (const Part& part : parts_) {
    sum += static_cast<double>(part.low + part.high) / 2 * static_cast<double>(part.weight);
  }
  return sum / static_cast<double>(weights_);
}

std::vector<std::pair<uint64_t, double>> ValueSizes::Spread(uint64_t steps) const {
  std::vector<std::pair<uint64_t, double>> sizes;
  for (const Part& part : parts_) {
    const uint64_t width = part.high - part.low + 1;
    const uint64_t count = std::min(width, steps);
    const double share = static_cast<double>(part.weight) / static_cast<double>(weights_) /
                         static_cast<double>(count);
    // The middle of each of `count` pieces of the range.
    for (uint64_t i = 0; i < count; ++i) {
      sizes.emplace_back(part.low + (2 * i + 1) * width / (2 * count), share);
    }
  }
  return sizes;
}

absl::StatusOr<ValueSizes> ParseValueSizes(std::string_view text) {
  const auto wrong = [text] {
    return absl::InvalidArgumentError(absl::StrCat(
        ToAbsl(text),
        " is not understood; give a size such as 64 or 4k, a range such as 64..4096, or several "
        "with weights such as 64:70,1k..4k:30; each from 1 byte to 1 GiB"));
  };
  ValueSizes sizes;
  sizes.text_ = text;
  for (const absl::string_view piece : absl::StrSplit(ToAbsl(text), ',')) {
    std::string_view range = ToStd(piece);
    uint64_t weight = 1;
    if (const size_t colon = range.find(':'); colon != std::string_view::npos) {
      if (!absl::SimpleAtoi(ToAbsl(range.substr(colon + 1)), &weight) || weight == 0 ||
          weight > kWeightMax) {
        return wrong();
      }
      range = range.substr(0, colon);
    }
    const size_t dots = range.find("..");
    const std::optional<uint64_t> low = SizeOf(range.substr(0, dots));
    const std::optional<uint64_t> high =
        dots == std::string_view::npos ? low : SizeOf(range.substr(dots + 2));
    if (!low.has_value() || !high.has_value() || *low > *high) return wrong();
    sizes.parts_.push_back({*low, *high, weight});
    sizes.weights_ += weight;
  }
  return sizes;
}

}  // namespace kvd::bench
