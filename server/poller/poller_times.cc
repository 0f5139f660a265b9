// How long requests took.
//
// The clock is read once in a step that answered anything, when its replies have been posted, which
// is what ends all requests that it answered; and once more at its beginning if the step before it
// had nothing to do. So what a batch answers took as long as its step, each of its requests. Where
// the time went, which matters of slow ones only, is told apart at requests that may take long:
// these read the clock themselves.
//
// What is slow in one step becomes one line of the slow log, with the count of requests that it
// hit; only those that had a long time to themselves have lines of their own.
#include <algorithm>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "server/poller/poller.h"

namespace kvd {

// Apart from evicting, only these take more than some microseconds.
bool Poller::MayTakeLong(const RequestView& request) {
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kFlush:
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kTouch:
    case Opcode::kStat:
    case Opcode::kSessions:
    case Opcode::kKick:
      return true;
    default:
      return false;
  }
}

void Poller::NoteLate(int64_t batch_ns) {
  int64_t stalled_ns = 0;
  if (batch_ns >= StallMeter::kStallNs || stall_meter_.IsDue(step_ended_ns_)) {
    stalled_ns = std::min(batch_ns, NoteStall(stall_meter_.Look(step_ended_ns_)));
  }
  if (batch_ns >= options_.slow_ns && batched_ != 0)
    NoteSlowBatch(std::span(batch_).first(batched_), stalled_ns);
  own_times_count_ = 0;
  for (const Finished& finished : std::span(finished_).first(std::exchange(finished_count_, 0)))
    NoteFinished(finished, step_ended_ns_);
  WriteSlow();
}

int64_t Poller::NoteStall(int64_t stalled_ns) {
  if (stalled_ns <= 0) return 0;
  const auto stalled = static_cast<uint64_t>(stalled_ns);
  counters_.stalls.Add(1);
  counters_.stalled_ns.Add(stalled);
  counters_.longest_stall_ns.Raise(stalled);
  return stalled_ns;
}

// A request that was answered after all, in this step.
void Poller::Finish(ChannelId channel, const RequestHeader& request, const RequestTiming& timing) {
  const Finished finished{channel, request.opcode, request.key_len, request.value_len, timing};
  if (finished_count_ == finished_.size()) return NoteFinished(finished, clock_.NowMonotonicNs());
  finished_[finished_count_++] = finished;
}

void Poller::NoteFinished(const Finished& finished, int64_t now_ns) {
  const RequestTiming& timing = finished.timing;
  const int64_t ns = now_ns - timing.taken_ns;
  times_.Add(finished.opcode, ns);
  if (ns < options_.slow_ns) return;
  RequestPhases phases{.pulling_ns = timing.pulling_ns,
                       .evicting_ns = timing.evicting_ns,
                       .executing_ns = timing.executing_ns};
  phases.waiting_ns = std::max<int64_t>(0, ns - phases.total_ns());
  NoteSlow(finished, phases, phases.Longest() != "waiting");
}

// The request has just been executed: what passed since the last look at
// the clock is its own, but for some microseconds of others that are none of these.
void Poller::NoteOwnTime(const Decoded& decoded, int64_t evicting_ns) {
  if (own_times_count_ == 0) looked_ns_ = taken_ns_;
  const int64_t now_ns = clock_.NowMonotonicNs();
  const int64_t own_ns = now_ns - std::exchange(looked_ns_, now_ns);
  own_times_[own_times_count_++] = {static_cast<size_t>(&decoded - batch_.data()), evicting_ns,
                                    std::max<int64_t>(0, own_ns - evicting_ns)};
}

// Those whose own time is known waited for the rest of the step; the others waited for them, and
// had what is left to themselves, together. A stall was in the one whose own time can hold it.
void Poller::NoteSlowBatch(std::span<const Decoded> batch, int64_t stalled_ns) {
  const int64_t step_ns = step_ended_ns_ - taken_ns_;
  const bool alone = batch.size() == 1;
  const auto own_times = std::span(own_times_).first(own_times_count_);
  int64_t known_ns = 0;
  int64_t stalled_elsewhere_ns = stalled_ns;
  for (const OwnTime& own : own_times) {
    known_ns += own.evicting_ns + own.executing_ns;
    if (own.executing_ns >= stalled_ns) stalled_elsewhere_ns = 0;
  }
  if (alone) known_ns = 0;  // nobody to wait for
  RequestPhases others{.waiting_ns = known_ns, .stalled_ns = stalled_elsewhere_ns};
  others.executing_ns = std::max<int64_t>(0, step_ns - others.total_ns());
  auto own = own_times.begin();
  for (size_t place = 0; place < batch.size(); ++place) {
    RequestPhases phases = others;
    const bool is_known = own != own_times.end() && own->place == place;
    if (is_known) {
      const int64_t stalled_here_ns = own->executing_ns >= stalled_ns ? stalled_ns : 0;
      phases = {.evicting_ns = own->evicting_ns,
                .executing_ns = own->executing_ns - stalled_here_ns,
                .stalled_ns = stalled_here_ns};
      const int64_t rest_ns = std::max<int64_t>(0, step_ns - phases.total_ns());
      (alone ? phases.executing_ns : phases.waiting_ns) += rest_ns;
      ++own;
    }
    const Decoded& decoded = batch[place];
    const RequestHeader& header = decoded.request.header;
    if (!decoded.answered) continue;
    const std::string_view longest = phases.Longest();
    NoteSlow({decoded.channel, header.opcode, header.key_len, header.value_len, {}}, phases,
             (is_known || alone) && longest != "waiting" && longest != "stalled");
  }
}

// `to_blame`: the time was its own; of those that had to wait one line speaks for all.
void Poller::NoteSlow(const Finished& finished, const RequestPhases& phases, bool to_blame) {
  if (!to_blame) {
    const uint32_t requests = victims_.requests + 1;
    if (phases.total_ns() > victims_.phases.total_ns() || requests == 1)
      victims_ = {finished, phases};
    victims_.requests = requests;
    return;
  }
  SlowEntry entry{finished, phases, 1};
  if (entry.phases.total_ns() > culprit_.phases.total_ns()) std::swap(entry, culprit_);
  if (entry.requests != 0) WriteSlow(entry);
}

// Those that waited stand with what they waited for, if that was in this step.
void Poller::WriteSlow() {
  if (culprit_.requests != 0 && victims_.phases.Longest() == "waiting") {
    culprit_.requests += std::exchange(victims_.requests, 0);
  }
  for (SlowEntry* entry : {&victims_, &culprit_}) {
    if (entry->requests != 0) WriteSlow(*entry);
    *entry = {};
  }
}

void Poller::WriteSlow(const SlowEntry& entry) {
  const Finished& finished = entry.finished;
  const ServerSession* const session = sessions_.Find(finished.channel);
  try {
    options_.slow({.at_unix_us = static_cast<int64_t>(NowUnixUs()),
                   .requests = entry.requests,
                   .operation = OperationName(static_cast<Opcode>(finished.opcode)),
                   .session_id = session == nullptr ? 0 : session->session_id,
                   .name = session == nullptr ? std::string() : session->client_name,
                   .key_bytes = finished.key_bytes,
                   .value_bytes = finished.value_bytes,
                   .phases = entry.phases});
  } catch (const std::bad_alloc&) {
    // One that nobody will hear of.
  }
}

int64_t Poller::Stopwatch::Stop() {
  const int64_t now_ns = poller_.clock_.NowMonotonicNs();
  const int64_t evicting_ns = poller_.shard_.evicting_ns() - evicting_ns_;
  timing_.evicting_ns += evicting_ns;
  timing_.executing_ns += std::max<int64_t>(0, now_ns - begun_ns_ - evicting_ns);
  return now_ns;
}

}  // namespace kvd
