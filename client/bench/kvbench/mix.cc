#include "client/bench/kvbench/mix.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/string_view.h"

namespace kvd::bench {
namespace {

constexpr std::array<std::string_view, kOperations> kNames = {"get", "put", "insert", "rmw"};

constexpr uint32_t kWeightMax = 1'000'000;

struct Workload {
  char letter;
  std::array<uint32_t, kOperations> weights;
  Distribution::Kind distribution;
};

constexpr Workload kWorkloads[] = {
    {'a', {50, 50, 0, 0}, Distribution::Kind::kZipf},
    {'b', {95, 5, 0, 0}, Distribution::Kind::kZipf},
    {'c', {100, 0, 0, 0}, Distribution::Kind::kZipf},
    {'d', {95, 0, 5, 0}, Distribution::Kind::kLatest},
    {'f', {50, 0, 0, 50}, Distribution::Kind::kZipf},
};

bool ParseWeight(std::string_view text, uint32_t& weight) {
  return absl::SimpleAtoi(ToAbsl(text), &weight) && weight <= kWeightMax;
}

}  // namespace

std::string_view NameOf(Operation operation) { return kNames[static_cast<size_t>(operation)]; }

Mix::Mix(const std::array<uint32_t, kOperations>& weights) : weights_(weights) {
  for (const uint32_t weight : weights_) sum_ += weight;
  KVD_CHECK(sum_ > 0);
}

Operation Mix::Choose(Random& random) const {
  auto left = static_cast<uint32_t>(random.Uniform(sum_));
  size_t operation = 0;
  while (left >= weights_[operation]) left -= weights_[operation++];
  return static_cast<Operation>(operation);
}

double Mix::Share(Operation operation) const {
  return static_cast<double>(weights_[static_cast<size_t>(operation)]) / sum_;
}

std::string Mix::Text() const {
  std::string text;
  for (size_t i = 0; i < kOperations; ++i) {
    if (weights_[i] == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", ToAbsl(kNames[i]), " ",
                    Share(static_cast<Operation>(i)) * 100, " %");
  }
  return text;
}

absl::StatusOr<NamedMix> ParseMix(std::string_view text) {
  if (text.size() == 1) {
    const char letter = absl::ascii_tolower(static_cast<unsigned char>(text[0]));
    for (const Workload& workload : kWorkloads) {
      if (workload.letter != letter) continue;
      return NamedMix{Mix(workload.weights), Distribution{.kind = workload.distribution}};
    }
    if (letter == 'e') {
      return absl::InvalidArgumentError(absl::StrCat(
          ToAbsl(text), " scans ranges of keys, which have no order here; give a, b, c, d or f"));
    }
  }
  const size_t colon = text.find(':');
  uint32_t reads = 0;
  uint32_t writes = 0;
  if (colon != std::string_view::npos && ParseWeight(text.substr(0, colon), reads) &&
      ParseWeight(text.substr(colon + 1), writes) && reads + writes > 0) {
    return NamedMix{Mix({reads, writes, 0, 0}), Distribution{}};
  }
  return absl::InvalidArgumentError(
      absl::StrCat(ToAbsl(text), " is not understood; give READ:WRITE such as 95:5, each at most ",
                   kWeightMax, ", or a workload of YCSB: a, b, c, d or f"));
}

}  // namespace kvd::bench
