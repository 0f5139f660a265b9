// What operations a run is made of.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/distribution.h"
#include "common/base/random.h"

namespace kvd::bench {

// Of YCSB: read, update, insert of a key that is not there yet, and a read with an update of what
// was read.
enum class Operation : uint8_t { kGet, kPut, kInsert, kReadModifyWrite };

inline constexpr size_t kOperations = 4;

// "get", "put", "insert", "rmw".
std::string_view NameOf(Operation operation);

class Mix {
 public:
  // A weight for each Operation; their sum is above 0 and fits 32 bits.
  explicit Mix(const std::array<uint32_t, kOperations>& weights);

  Operation Choose(Random& random) const;
  bool Has(Operation operation) const { return weights_[static_cast<size_t>(operation)] > 0; }
  double Share(Operation operation) const;
  std::string Text() const;  // "get 95 %, put 5 %"

 private:
  std::array<uint32_t, kOperations> weights_;
  uint32_t sum_ = 0;
};

// A mix as a user names it, with the distribution that belongs to it.
struct NamedMix {
  Mix mix;
  Distribution distribution;
};

// "READ:WRITE" (weights, such as 95:5; uniform), or the core workloads of YCSB (Cooper et al., SoCC
// 2010) by their letters: a 50:50, b 95:5, c 100:0, all zipf; d: 95 reads of the latest and 5
// inserts; f: 50 reads and 50 read-modify-writes, zipf. Case does not matter. InvalidArgument names
// the text and what is allowed; e is refused, for it scans ranges.
absl::StatusOr<NamedMix> ParseMix(std::string_view text);

}  // namespace kvd::bench
