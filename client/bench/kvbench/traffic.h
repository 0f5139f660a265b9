// The operations of one client, one after the other.
#pragma once

#include <cstdint>
#include <string>

#include "client/bench/kvbench/acknowledged_counter.h"
#include "client/bench/kvbench/bench_key.h"
#include "client/bench/kvbench/bench_value.h"
#include "client/bench/kvbench/distribution.h"
#include "client/bench/kvbench/mix.h"
#include "client/bench/kvbench/options.h"
#include "common/base/hash.h"
#include "common/base/random.h"

namespace kvd::bench {

struct Planned {
  Operation operation = Operation::kGet;
  uint64_t key = 0;
  bool missing = false;  // the key is one that is not there
};

// The same for the same seed and client, but for what other clients insert meanwhile. Allocates
// nothing after construction.
class Traffic {
 public:
  Traffic(const Workload& workload, AcknowledgedCounter& items, size_t client)
      : workload_(workload),
        items_(items),
        random_(Mix64(workload.seed) ^ Mix64(client + 0x5851F42D4C957F2D)),
        chooser_(workload.distribution, workload.keys),
        keys_(workload.key_size),
        next_stamp_((Mix64(workload.seed + client) | 1) << 40) {}

  Operation NextOperation() { return workload_.mix.Choose(random_); }

  // The key of an operation of that kind. An insert's is to be acknowledged when it is there.
  Planned Plan(Operation operation) {
    if (operation == Operation::kInsert) return {operation, items_.Take(), false};
    if (operation == Operation::kGet && workload_.missing > 0 &&
        random_.NextDouble() < workload_.missing) {
      const uint64_t half = KeyWriter::CountMax(workload_.key_size) / 2;
      return {operation, half + random_.Uniform(half), true};
    }
    return {operation, chooser_.Choose(random_, items_.Limit()), false};
  }

  void Acknowledge(uint64_t key) { items_.Acknowledge(key); }

  const KeyWriter& keys() const { return keys_; }

  // A value for the key, in memory for the largest one; returns its size.
  size_t WriteValue(uint64_t key, char* into) {
    const size_t size = workload_.value_sizes.Draw(random_);
    FillValue(key, next_stamp_++, into, size);
    return size;
  }

 private:
  const Workload& workload_;
  AcknowledgedCounter& items_;
  Random random_;
  KeyChooser chooser_;
  KeyWriter keys_;
  uint64_t next_stamp_;
};

}  // namespace kvd::bench
