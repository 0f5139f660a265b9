// Which key an operation is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/zipf.h"
#include "common/base/random.h"

namespace kvd::bench {

struct Distribution {
  enum class Kind { kUniform, kZipf, kLatest };

  static constexpr double kThetaDefault = 0.99;  // as YCSB has it

  Kind kind = Kind::kUniform;
  double theta = kThetaDefault;  // kZipf and kLatest

  std::string Text() const;  // as ParseDistribution takes it
};

// "uniform", "zipf", "zipf:THETA", "latest", "latest:THETA"; THETA above 0 and up to 10.
// InvalidArgument names the text and what is allowed.
absl::StatusOr<Distribution> ParseDistribution(std::string_view text);

// Draws numbers of keys. Where few keys are drawn often, those are the ones with low numbers (zipf)
// or the highest (latest); the keys of neighbouring numbers have nothing in common, see
// bench_key.h.
class KeyChooser {
 public:
  // `keys` at least 1: those that are there at the beginning.
  KeyChooser(const Distribution& distribution, uint64_t keys);

  // Of the keys below `count`, which is at least as large as it was in the last call.
  uint64_t Choose(Random& random, uint64_t count);

 private:
  Distribution::Kind kind_;
  std::optional<Zipf> zipf_;
};

}  // namespace kvd::bench
