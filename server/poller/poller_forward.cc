// Requests that one poller executes for another.
#include <memory>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/memory_reserve.h"
#include "server/poller/poller.h"

namespace kvd {
namespace {

constexpr size_t kMailPerStep = 64;

}  // namespace

size_t Poller::TakeMail() {
  size_t taken = 0;
  int64_t now_ns = 0;  // 0: nothing was served
  for (; taken < kMailPerStep; ++taken) {
    auto* forward = static_cast<Forward*>(mailbox_.Take());
    if (forward == nullptr) break;
    if (forward->returning) {
      Guard(forward->channel, [&] { OnReturn(forward); });
      continue;
    }
    if (now_ns == 0) {
      shard_.RefreshClock();
      now_ns = clock_.NowMonotonicNs();
    }
    Stopwatch watch(*this, forward->timing, now_ns);
    forward->unserved = false;
    try {
      Serve(*forward);
    } catch (const std::bad_alloc&) {
      forward->unserved = true;  // its home ends the channel
    }
    now_ns = watch.Stop();
    forward->returning = true;
    Poller& home = *peers_[forward->home];
    home.mailbox_.Post(forward);
    home.Wake();
  }
  return taken;
}

void Poller::Post(Forward* forward) {
  forward->returning = false;
  Poller& owner = *peers_[forward->owner];
  owner.mailbox_.Post(forward);
  owner.Wake();
}

void Poller::SendForward(const Decoded& decoded) {
  counters_.forwarded.Add(1);
  if (IsPulled(decoded.request)) write_order_.Begin(decoded.channel, decoded.hash);
  Post(ForwardOf(decoded));
}

Forward* Poller::ForwardOf(const Decoded& decoded) {
  Forward* forward = WithoutReserve([this] { return NewForward(); });
  forward->ordered = IsPulled(decoded.request);
  forward->step = forward->ordered ? Forward::Step::kReserve : Forward::Step::kExecute;
  forward->owner = decoded.owner;
  forward->channel = decoded.channel;
  forward->origin = decoded.origin();
  forward->timing = {.taken_ns = taken_ns_};
  forward->hash = decoded.hash;
  try {
    WithoutReserve([&] { forward->SetRequest(decoded.request); });
  } catch (const std::bad_alloc&) {
    Recycle(forward);
    throw;
  }
  return forward;
}

// On the owner's thread.
void Poller::Serve(Forward& forward) {
  switch (forward.step) {
    case Forward::Step::kExecute:
      forward.SetOutcome(operations_.Execute(forward.origin, forward.request, forward.hash));
      break;
    case Forward::Step::kReserve: {
      Outcome refusal;
      forward.reserved = operations_.BeginPulled(forward.origin, forward.request, forward.hash,
                                                 forward.reservation, refusal);
      forward.SetOutcome(refusal);
      break;
    }
    case Forward::Step::kFinish:
      forward.SetOutcome(operations_.FinishPulled(forward.origin, forward.request.header,
                                                  forward.reservation, forward.pulled));
      break;
    case Forward::Step::kRelease:
      shard_.Release(forward.slot);
      break;
    case Forward::Step::kHits:
      NoteHits(forward.bytes);
      break;
  }
}

// On the home's thread.
void Poller::OnReturn(Forward* forward) {
  if (forward->step == Forward::Step::kReserve && forward->reserved) {
    PendingPull pull;
    pull.channel = forward->channel;
    pull.request = forward->request.header;
    pull.reservation = forward->reservation;
    pull.forward = forward;
    if (sessions_.Find(forward->channel) != nullptr) {
      return StartPull(forward->channel, std::move(pull));
    }
    forward->answered = true;
    return FinishPull(pull, /*pulled=*/false);
  }
  const absl::Cleanup recycle = [this, forward] { Recycle(forward); };
  if (forward->unserved) throw std::bad_alloc();
  if (!forward->answered) {
    Answer(forward->channel, sessions_.Find(forward->channel), forward->outcome, forward->owner);
    Finish(forward->channel, forward->request.header, forward->timing);
  }
  if (forward->ordered) NextWrite(forward->channel, forward->hash);
}

void Poller::Release(const HeldItem& held) {
  if (held.shard == index_) return shard_.Release(held.slot);
  Forward* forward = NewForward();
  forward->step = Forward::Step::kRelease;
  forward->answered = true;
  forward->owner = held.shard;
  forward->slot = held.slot;
  Post(forward);
}

Forward* Poller::NewForward() {
  std::unique_ptr<Forward> forward;
  if (spare_forwards_.empty()) {
    forward = std::make_unique<Forward>();
  } else {
    forward = std::move(spare_forwards_.back());
    spare_forwards_.pop_back();
  }
  forward->home = index_;
  forward->answered = false;
  forward->reserved = false;
  forward->ordered = false;
  forward->timing = {};
  ++forwards_out_;
  return forward.release();
}

void Poller::Recycle(Forward* forward) {
  --forwards_out_;
  std::unique_ptr<Forward> owned(forward);
  if (spare_forwards_.size() < spare_forwards_.capacity()) {
    spare_forwards_.push_back(std::move(owned));
  }
}

}  // namespace kvd
