#include "client/bench/kvbench/loop.h"

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/clock.h"
#include "common/base/string_view.h"

namespace kvd::bench {

int64_t Loop::Begin() {
  if (pacer.open()) {
    const int64_t due_ns = pacer.due_ns();
    WaitUntil(due_ns, stop);
    pacer.Advance();
    // The end of the run may come before its turn.
    return RealClock::Get().NowMonotonicNs() < due_ns ? 0 : due_ns;
  }
  const bool timed = workload.sample == 1 || calls_++ % workload.sample == 0;
  return timed ? RealClock::Get().NowMonotonicNs() : 0;
}

void Loop::Count(Operation operation, uint64_t count, int64_t begin_ns, int64_t end_ns) {
  const auto index = static_cast<size_t>(operation);
  if (begin_ns != 0) tally.times[index].Add(end_ns - begin_ns);
  tally.operations[index] += count;
  left -= std::min(left, count);
}

absl::Status Loop::Judge(const Planned& planned, const absl::Status& status,
                         std::string_view value) {
  if (status.ok()) {
    tally.bytes_read += value.size();
    if (!planned.missing && BelongsToKey(planned.key, value, workload.verify))
      return absl::OkStatus();
    return Fail("get", planned,
                absl::DataLossError(absl::StrCat(
                    "a value of ", value.size(),
                    " bytes came that kvbench never stored under this key; if somebody else did, "
                    "leave out --load=false, otherwise report this")));
  }
  if (!absl::IsNotFound(status)) return Fail("get", planned, status);
  ++(planned.missing ? tally.misses : tally.not_found);
  return absl::OkStatus();
}

absl::Status Loop::Fail(std::string_view what, const Planned& planned, absl::Status status) {
  asked = absl::StrCat(ToAbsl(what), " ", cli::Quoted(traffic.keys().Text(planned.key)));
  return status;
}

}  // namespace kvd::bench
