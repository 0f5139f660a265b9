#include <algorithm>
#include <chrono>
#include <vector>

#include "client/bench/kvbench/loop.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

class Started {
 public:
  explicit Started(Loop& loop)
      : loop_(loop), flights_(loop.workload.depth), ended_(loop.workload.depth) {
    for (size_t i = 0; i < flights_.size(); ++i) {
      flights_[i].key.resize(loop.workload.key_size);
      flights_[i].bytes.resize(loop.workload.value_sizes.max());
      free_.push_back(i);
    }
  }

  absl::Status Run() {
    absl::Status status = Fly();
    // The store still holds the buffers of what is under way; its deadline ends whatever takes too
    // long.
    while (free_.size() < flights_.size()) {
      const size_t count = loop_.store.Wait(ended_, std::chrono::milliseconds(100));
      for (size_t i = 0; i < count; ++i) free_.push_back(ended_[i].tag);
    }
    return status;
  }

 private:
  struct Flight {
    Planned planned;
    int64_t begin_ns = 0;
    bool reading = false;
    std::string key;
    std::string bytes;  // of the value that is read or written
  };

  absl::Status Fly() {
    uint64_t to_start = loop_.left;  // of a fixed number of operations
    while (loop_.GoesOn()) {
      while (to_start > 0 && !free_.empty() && IsDue()) {
        const size_t index = free_.back();
        free_.pop_back();
        Start(index);
        --to_start;
      }
      const size_t count = loop_.store.Wait(ended_, Patience());
      absl::Status status;  // the first that fails; the others are taken back all the same
      for (size_t i = 0; i < count; ++i) status.Update(End(ended_[i]));
      KVD_RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

  static int64_t Now() { return RealClock::Get().NowMonotonicNs(); }

  bool IsDue() const { return !loop_.pacer.open() || loop_.pacer.due_ns() <= Now(); }

  // How long nothing needs to be started.
  std::chrono::nanoseconds Patience() const {
    constexpr int64_t kMaxNs = 20'000'000;
    if (!loop_.pacer.open() || free_.empty()) return std::chrono::nanoseconds(kMaxNs);
    const int64_t left_ns = loop_.pacer.due_ns() - Now();
    if (free_.size() == flights_.size()) {  // with nothing under way the store does not wait
      WaitUntil(loop_.pacer.due_ns(), loop_.stop);
      return std::chrono::nanoseconds(0);
    }
    // What is left when a wait would end late is spent polling.
    constexpr int64_t kPollNs = 100'000;
    return std::chrono::nanoseconds(std::clamp<int64_t>(left_ns - kPollNs, 0, kMaxNs));
  }

  void Start(size_t index) {
    Flight& flight = flights_[index];
    flight.planned = loop_.traffic.Plan(loop_.traffic.NextOperation());
    loop_.traffic.keys().Write(flight.planned.key, flight.key.data());
    const Operation operation = flight.planned.operation;
    const bool writes = operation == Operation::kPut || operation == Operation::kInsert;
    const size_t size = writes ? WriteValue(flight) : 0;
    flight.begin_ns = loop_.Begin();
    if (writes) {
      loop_.store.StartPut(flight.key, {flight.bytes.data(), size}, 0, index);
      flight.reading = false;
    } else {
      StartGet(index);
    }
  }

  void StartGet(size_t index) {
    flights_[index].reading = true;
    loop_.store.StartGet(flights_[index].key, flights_[index].bytes, index);
  }

  size_t WriteValue(Flight& flight) {
    const size_t size = loop_.traffic.WriteValue(flight.planned.key, flight.bytes.data());
    loop_.tally.bytes_written += size;
    return size;
  }

  absl::Status End(const Ended& ended) {
    Flight& flight = flights_[ended.tag];
    const Planned& planned = flight.planned;
    const bool modifies = planned.operation == Operation::kReadModifyWrite;
    if (flight.reading) {
      const std::string_view value(flight.bytes.data(),
                                   std::min(ended.length, flight.bytes.size()));
      const int64_t end_ns = Now();
      const absl::Status status = loop_.Judge(planned, ended.status, value);
      if (!status.ok()) return Land(ended.tag, status);
      if (!modifies) return Land(ended.tag, absl::OkStatus(), end_ns);
      flight.reading = false;
      const size_t size = WriteValue(flight);
      const uint64_t version =
          loop_.workload.modify_if_version && ended.status.ok() ? ended.version : 0;
      loop_.store.StartPut(flight.key, {flight.bytes.data(), size}, version, ended.tag);
      return absl::OkStatus();
    }
    const bool lost = absl::IsAborted(ended.status) || absl::IsNotFound(ended.status);
    if (lost && modifies && loop_.workload.modify_if_version) {
      ++loop_.tally.conflicts;
      StartGet(ended.tag);
      return absl::OkStatus();
    }
    if (!ended.status.ok()) return Land(ended.tag, loop_.Fail("put", planned, ended.status));
    if (planned.operation == Operation::kInsert) loop_.traffic.Acknowledge(planned.key);
    return Land(ended.tag, absl::OkStatus(), Now());
  }

  // `tag` has come back for good.
  absl::Status Land(size_t tag, absl::Status status, int64_t end_ns = 0) {
    free_.push_back(tag);
    if (status.ok())
      loop_.Count(flights_[tag].planned.operation, 1, flights_[tag].begin_ns, end_ns);
    return status;
  }

  Loop& loop_;
  std::vector<Flight> flights_;
  std::vector<size_t> free_;
  std::vector<Ended> ended_;
};

}  // namespace

absl::Status RunStarted(Loop& loop) { return Started(loop).Run(); }

}  // namespace kvd::bench
