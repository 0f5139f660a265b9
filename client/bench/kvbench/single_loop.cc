#include "client/bench/kvbench/loop.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

class Single {
 public:
  explicit Single(Loop& loop)
      : loop_(loop),
        key_(loop.workload.key_size, '\0'),
        read_(loop.workload.value_sizes.max(), '\0'),
        written_(loop.workload.value_sizes.max(), '\0') {}

  absl::Status Run() {
    while (loop_.GoesOn()) {
      const Planned planned = loop_.traffic.Plan(loop_.traffic.NextOperation());
      loop_.traffic.keys().Write(planned.key, key_.data());
      switch (planned.operation) {
        case Operation::kGet:
          KVD_RETURN_IF_ERROR(Get(planned));
          break;
        case Operation::kPut:
        case Operation::kInsert:
          KVD_RETURN_IF_ERROR(Put(planned));
          break;
        case Operation::kReadModifyWrite:
          KVD_RETURN_IF_ERROR(ReadModifyWrite(planned));
          break;
      }
    }
    return absl::OkStatus();
  }

 private:
  static int64_t Now() { return RealClock::Get().NowMonotonicNs(); }
  // The end of what began then; nobody looks at the clock for what is not timed.
  static int64_t End(int64_t begin_ns) { return begin_ns == 0 ? 0 : Now(); }

  absl::Status Get(const Planned& planned) {
    uint64_t version = 0;
    const int64_t begin_ns = loop_.Begin();
    const absl::Status status = loop_.store.Get(key_, read_, version);
    loop_.Count(planned.operation, 1, begin_ns, End(begin_ns));
    return loop_.Judge(planned, status, read_);
  }

  absl::Status Put(const Planned& planned) {
    const size_t size = loop_.traffic.WriteValue(planned.key, written_.data());
    const int64_t begin_ns = loop_.Begin();
    const absl::Status status = loop_.store.Put(key_, {written_.data(), size});
    const int64_t end_ns = End(begin_ns);
    if (!status.ok()) return loop_.Fail("put", planned, status);
    loop_.Count(planned.operation, 1, begin_ns, end_ns);
    loop_.tally.bytes_written += size;
    if (planned.operation == Operation::kInsert) loop_.traffic.Acknowledge(planned.key);
    return absl::OkStatus();
  }

  absl::Status ReadModifyWrite(const Planned& planned) {
    const int64_t begin_ns = loop_.Begin();
    while (true) {
      uint64_t version = 0;
      KVD_RETURN_IF_ERROR(loop_.Judge(planned, loop_.store.Get(key_, read_, version), read_));
      const size_t size = loop_.traffic.WriteValue(planned.key, written_.data());
      const std::string_view value(written_.data(), size);
      const bool conditional = loop_.workload.modify_if_version && version != 0;
      const absl::Status status = conditional ? loop_.store.PutIfVersion(key_, value, version)
                                              : loop_.store.Put(key_, value);
      loop_.tally.bytes_written += size;
      if (status.ok()) break;
      if (!conditional || !(absl::IsAborted(status) || absl::IsNotFound(status))) {
        return loop_.Fail("put", planned, status);
      }
      ++loop_.tally.conflicts;
    }
    loop_.Count(planned.operation, 1, begin_ns, End(begin_ns));
    return absl::OkStatus();
  }

  Loop& loop_;
  std::string key_;
  std::string read_;
  std::string written_;
};

}  // namespace

absl::Status RunSingle(Loop& loop) { return Single(loop).Run(); }

}  // namespace kvd::bench
