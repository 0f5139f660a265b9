#include <vector>

#include "client/bench/kvbench/loop.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

class Batches {
 public:
  explicit Batches(Loop& loop)
      : loop_(loop),
        planned_(loop.workload.batch),
        key_bytes_(loop.workload.batch * loop.workload.key_size, '\0'),
        value_bytes_(loop.workload.batch * loop.workload.value_sizes.max(), '\0'),
        results_(loop.workload.batch),
        puts_(loop.workload.batch) {
    for (size_t i = 0; i < loop.workload.batch; ++i) {
      keys_.emplace_back(key_bytes_.data() + i * loop.workload.key_size, loop.workload.key_size);
      results_[i].value.reserve(loop.workload.value_sizes.max());
    }
  }

  absl::Status Run() {
    while (loop_.GoesOn()) {
      const Operation operation = loop_.traffic.NextOperation();
      for (size_t i = 0; i < planned_.size(); ++i) {
        planned_[i] = loop_.traffic.Plan(operation);
        loop_.traffic.keys().Write(planned_[i].key, const_cast<char*>(keys_[i].data()));
      }
      const bool reads = operation == Operation::kGet || operation == Operation::kReadModifyWrite;
      const bool writes = operation != Operation::kGet;
      if (writes) WriteValues();
      const int64_t begin_ns = loop_.Begin();
      if (reads) KVD_RETURN_IF_ERROR(Get());
      if (writes) KVD_RETURN_IF_ERROR(Put());
      loop_.Count(operation, planned_.size(), begin_ns,
                  begin_ns == 0 ? 0 : RealClock::Get().NowMonotonicNs());
      if (reads) KVD_RETURN_IF_ERROR(JudgeAll());
      if (operation == Operation::kInsert) {
        for (const Planned& planned : planned_) loop_.traffic.Acknowledge(planned.key);
      }
    }
    return absl::OkStatus();
  }

 private:
  void WriteValues() {
    char* at = value_bytes_.data();
    for (size_t i = 0; i < planned_.size(); ++i) {
      const size_t size = loop_.traffic.WriteValue(planned_[i].key, at);
      puts_[i] = {keys_[i], {at, size}};
      at += size;
      loop_.tally.bytes_written += size;
    }
  }

  absl::Status Get() {
    const absl::Status status = loop_.store.MultiGet(keys_, results_);
    return status.ok() ? status : loop_.Fail("mget", planned_[0], status);
  }

  absl::Status Put() {
    const absl::Status status = loop_.store.MultiPut(puts_);
    return status.ok() ? status : loop_.Fail("mput", planned_[0], status);
  }

  absl::Status JudgeAll() {
    for (size_t i = 0; i < planned_.size(); ++i) {
      KVD_RETURN_IF_ERROR(loop_.Judge(planned_[i], results_[i].status, results_[i].value));
    }
    return absl::OkStatus();
  }

  Loop& loop_;
  std::vector<Planned> planned_;
  std::string key_bytes_;
  std::string value_bytes_;
  std::vector<std::string_view> keys_;  // in key_bytes_
  std::vector<GetResult> results_;
  std::vector<PutRequest> puts_;
};

}  // namespace

absl::Status RunBatches(Loop& loop) { return Batches(loop).Run(); }

}  // namespace kvd::bench
