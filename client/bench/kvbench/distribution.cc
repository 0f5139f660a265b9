#include "client/bench/kvbench/distribution.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd::bench {

std::string Distribution::Text() const {
  switch (kind) {
    case Kind::kUniform:
      return "uniform";
    case Kind::kZipf:
      return absl::StrCat("zipf:", theta);
    case Kind::kLatest:
      return absl::StrCat("latest:", theta);
  }
  return "";
}

absl::StatusOr<Distribution> ParseDistribution(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  Distribution distribution;
  bool good = true;
  if (name == "zipf") {
    distribution.kind = Distribution::Kind::kZipf;
  } else if (name == "latest") {
    distribution.kind = Distribution::Kind::kLatest;
  } else {
    good = text == "uniform";
  }
  if (good && colon != std::string_view::npos) {
    good = absl::SimpleAtod(ToAbsl(text.substr(colon + 1)), &distribution.theta) &&
           distribution.theta > 0 && distribution.theta <= 10;
  }
  if (good) return distribution;
  return absl::InvalidArgumentError(absl::StrCat(
      ToAbsl(text),
      " is not understood; give uniform, zipf:THETA or latest, THETA above 0 and at most 10"));
}

KeyChooser::KeyChooser(const Distribution& distribution, uint64_t keys) : kind_(distribution.kind) {
  if (kind_ != Distribution::Kind::kUniform) zipf_.emplace(distribution.theta, keys);
}

uint64_t KeyChooser::Choose(Random& random, uint64_t count) {
  switch (kind_) {
    case Distribution::Kind::kUniform:
      break;
    case Distribution::Kind::kZipf:
      return zipf_->Draw(random) - 1;
    case Distribution::Kind::kLatest:
      zipf_->GrowTo(count);
      return count - zipf_->Draw(random);
  }
  return random.Uniform(count);
}

}  // namespace kvd::bench
