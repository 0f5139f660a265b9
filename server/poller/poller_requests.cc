// What a poller does with its endpoint's events.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/memory_reserve.h"
#include "common/base/string_view.h"
#include "server/poller/poller.h"

namespace kvd {

void Poller::Handle(const ServerEvent& event) {
  switch (event.kind) {
    case ServerEvent::Kind::kOpened:
      OnOpened(event);
      break;
    case ServerEvent::Kind::kRequest:
      Decode(event);
      break;
    case ServerEvent::Kind::kPullDone:
      OnPullDone(event);
      break;
    case ServerEvent::Kind::kClosed:
      OnClosed(event);
      break;
  }
}

void Poller::OnOpened(const ServerEvent& event) {
  WithoutReserve([&] { sessions_.Open(event.channel, event, taken_ns_); });
  options_.session_begins(event.session_id, sessions_.CountersOf(event.channel));
  if (operations_.replies().clients() >= sweep_at_clients_) ForgetClients();
  options_.log(absl::StrCat("session ", event.session_id, ": ", sessions_.Find(event.channel)->name,
                            " connected"));
  if (const absl::Status why = options_.why_expelled(event.session_id); !why.ok()) {
    sessions_.Find(event.channel)->ending = true;
    endpoint_.Close(event.channel, why);
  }
}

void Poller::Decode(const ServerEvent& event) {
  Decoded& decoded = batch_[batched_++];
  decoded.channel = event.channel;
  decoded.session = nullptr;
  decoded.error = DecodeRequest(event.frame, decoded.request);
  decoded.hash = 0;
  decoded.owner = index_;
  decoded.answered = false;
  if (decoded.error != nullptr) return;
  if (HasKey(decoded.request)) decoded.hash = HashKey(decoded.request.key, hash_seed_);
  decoded.owner = OwnerOf(decoded);
}

// A cursor that names no shard is refused wherever it is executed.
uint32_t Poller::OwnerOf(const Decoded& decoded) const {
  const uint32_t shards = options_.geometry.shard_count;
  if (decoded.request.header.opcode == static_cast<uint8_t>(Opcode::kFlush)) {
    const uint32_t shard = FlushCursor::Of(decoded.request.header.argument).shard;
    return shard < shards ? shard : index_;
  }
  return HasKey(decoded.request) ? ShardOf(decoded.hash, shards) : index_;
}

// The buckets of all requests are on their way before the first one is needed; one alone would wait
// for its own in any case.
void Poller::Prefetch(std::span<const Decoded> batch) const {
  if (batch.size() == 1) return;
  for (const Decoded& decoded : batch) {
    if (decoded.hash != 0 && decoded.owner == index_) shard_.Prefetch(decoded.hash);
  }
}

void Poller::ExecuteBatch() {
  shard_.RefreshClock();
  const auto batch = std::span(batch_).first(batched_);
  Prefetch(batch);
  const bool alone = batch.size() == 1;
  int64_t evicting_ns = shard_.evicting_ns();
  for (Decoded& decoded : batch) {
    Guard(decoded.channel, [&] { Execute(decoded); });
    if (shard_.evicting_ns() != evicting_ns || (!alone && MayTakeLong(decoded.request)))
        [[unlikely]] {
      NoteOwnTime(decoded, shard_.evicting_ns() - evicting_ns);
      evicting_ns = shard_.evicting_ns();
    }
  }
}

void Poller::Execute(Decoded& decoded) {
  ServerSession* session = sessions_.Find(decoded.channel);
  if (session == nullptr || session->ending) return;
  decoded.session = session;
  decoded.answered = decoded.error == nullptr;
  SessionCounters& counters = session->counters;
  counters.requests.Add(1);
  if (decoded.error != nullptr) return RefuseFrame(decoded);
  counters.received_bytes.Add(sizeof(RequestHeader) + decoded.request.key.size() +
                              decoded.request.value.size());
  if (IsWrite(decoded.request.header.opcode)) counters.writes.Add(1);
  const auto opcode = static_cast<Opcode>(decoded.request.header.opcode);
  counters_.requests[decoded.request.header.opcode].Add(1);
  if (RoleFor(opcode) > session->role) [[unlikely]] {
    return Answer(decoded.channel, session, AnswerNotPermitted(decoded.request, RoleFor(opcode)),
                  index_);
  }
  switch (opcode) {
    case Opcode::kPing:
      return Answer(decoded.channel, session, AnswerPing(decoded.request, NowUnixUs()), index_);
    case Opcode::kStat:
      return AnswerText(decoded, options_.statistics);
    case Opcode::kSessions:
      return AnswerSessions(decoded);
    case Opcode::kKick:
      return AnswerKick(decoded);
    case Opcode::kRelease:
      if (const auto held = sessions_.TakeHeld(decoded.channel)) Release(*held);
      return Answer(decoded.channel, session, AnswerRelease(decoded.request), index_);
    case Opcode::kHits:
      return ExecuteHits(decoded);
    case Opcode::kGet:
    case Opcode::kPut:
    case Opcode::kDelete:
    case Opcode::kExists:
    case Opcode::kIncrement:
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kTouch:
    case Opcode::kFlush:
      break;
  }
  if (IsPulled(decoded.request) && !MayPull(*session, decoded.request.header.value_len)) {
    return Answer(decoded.channel, session, AnswerTooManyPulls(decoded.request), index_);
  }
  if (!write_order_.empty() && MustWait(decoded)) [[unlikely]] {
    decoded.answered = false;
    return write_order_.Wait(*ForwardOf(decoded));
  }
  if (decoded.owner != index_) {
    decoded.answered = false;
    return SendForward(decoded);
  }
  ExecuteHere(decoded);
}

// One is under way in any case, however long.
bool Poller::MayPull(const ServerSession& session, uint64_t bytes) const {
  const uint64_t max = options_.pull_bytes_max;
  return max == 0 || session.pull_bytes == 0 || (bytes <= max && session.pull_bytes <= max - bytes);
}

bool Poller::MustWait(const Decoded& decoded) const {
  return IsWrite(decoded.request.header.opcode) &&
         write_order_.IsBusy(decoded.channel, decoded.hash);
}

[[gnu::flatten]] void Poller::ExecuteHere(Decoded& decoded) {
  if (IsPulled(decoded.request)) {
    write_order_.Begin(decoded.channel, decoded.hash);
    decoded.answered = false;
    if (!ExecutePulled(decoded, {.taken_ns = taken_ns_})) NextWrite(decoded.channel, decoded.hash);
    return;
  }
  Answer(decoded.channel, decoded.session,
         operations_.Execute(decoded.origin(), decoded.request, decoded.hash), index_);
}

// False: there is nothing to pull, and it has been answered.
bool Poller::ExecutePulled(const Decoded& decoded, const RequestTiming& timing) {
  PendingPull pull;
  pull.timing = timing;
  Outcome refusal;
  Stopwatch watch(*this, pull.timing);
  const bool begun = operations_.BeginPulled(decoded.origin(), decoded.request, decoded.hash,
                                             pull.reservation, refusal);
  watch.Stop();
  if (!begun) {
    Answer(decoded.channel, decoded.session, refusal, index_);
    Finish(decoded.channel, decoded.request.header, pull.timing);
    return false;
  }
  pull.origin = decoded.origin();
  pull.request = decoded.request.header;
  StartPull(decoded.channel, std::move(pull));
  return true;
}

// The write that made this key busy has been answered: those that wait for it, up to the next pull.
void Poller::NextWrite(ChannelId channel, uint64_t hash) {
  for (;;) {
    ServerSession* const session = sessions_.Find(channel);
    // What waits in a session that ends is not executed: what came before may be sent again.
    if (session == nullptr || session->ending) return;
    Forward* const next = write_order_.Next(channel, hash);
    if (next == nullptr) return;
    if (next->owner != index_) return Post(next);
    const absl::Cleanup recycle = [this, next] { Recycle(next); };
    const Decoded decoded{.channel = channel,
                          .session = session,
                          .request = next->request,
                          .error = nullptr,
                          .hash = hash,
                          .owner = index_,
                          .answered = false};
    if (!IsPulled(next->request)) {
      Stopwatch watch(*this, next->timing);
      Answer(channel, session, operations_.Execute(decoded.origin(), decoded.request, hash),
             index_);
      watch.Stop();
      Finish(channel, next->request.header, next->timing);
    } else if (ExecutePulled(decoded, next->timing)) {
      return;
    }
  }
}

void Poller::StartPull(ChannelId channel, PendingPull pull) {
  pull.channel = channel;
  pull.began_ns = clock_.NowMonotonicNs();
  const uint64_t id = next_pull_++;
  const PullSource source{pull.request.pull_address, pull.request.pull_key, pull.request.value_len};
  // Written down first: bytes that arrive for a reservation of which nobody knows would be lost
  // memory.
  try {
    pulls_.emplace(id, pull);
  } catch (const std::bad_alloc&) {
    FinishPull(pull, /*pulled=*/false);
    throw;
  }
  const absl::Status started = endpoint_.Pull(channel, source, pull.reservation.value, id);
  if (started.ok()) {
    if (ServerSession* session = sessions_.Find(channel)) session->pull_bytes += source.length;
    return;
  }
  pulls_.erase(id);
  FinishPull(pull, /*pulled=*/false);
}

void Poller::OnPullDone(const ServerEvent& event) {
  auto node = pulls_.extract(event.pull_id);
  if (node.empty()) return;
  const uint64_t bytes = node.mapped().request.value_len;
  if (event.ok) counters_.pulled_bytes.Add(bytes);
  PendingPull& pull = node.mapped();
  if (ServerSession* session = sessions_.Find(pull.channel)) {
    session->pull_bytes -= bytes;
    if (event.ok) session->counters.received_bytes.Add(bytes);
  }
  RequestTiming& timing = pull.forward == nullptr ? pull.timing : pull.forward->timing;
  timing.pulling_ns += taken_ns_ - pull.began_ns;
  FinishPull(pull, event.ok);
}

// Writes or gives up the value, here or at its owner, and answers.
void Poller::FinishPull(PendingPull& pull, bool pulled) {
  if (pull.forward == nullptr) {
    shard_.RefreshClock();
    Stopwatch watch(*this, pull.timing);
    Answer(pull.channel, sessions_.Find(pull.channel),
           operations_.FinishPulled(pull.origin, pull.request, pull.reservation, pulled), index_);
    watch.Stop();
    Finish(pull.channel, pull.request, pull.timing);
    return NextWrite(pull.channel, pull.reservation.hash);
  }
  pull.forward->step = Forward::Step::kFinish;
  pull.forward->pulled = pulled;
  Post(pull.forward);
}

void Poller::OnClosed(const ServerEvent& event) {
  write_order_.Drop(event.channel, [this](Forward& waiting) { Recycle(&waiting); });
  // The pulls of the channel are over and nobody waits for their outcome.
  for (auto at = pulls_.begin(); at != pulls_.end();) {
    if (at->second.channel != event.channel) {
      ++at;
      continue;
    }
    PendingPull pull = std::move(at->second);
    at = pulls_.erase(at);
    if (pull.forward != nullptr) pull.forward->answered = true;
    FinishPull(pull, /*pulled=*/false);
  }
  const ServerSession* session = sessions_.Find(event.channel);
  if (session == nullptr) return;
  const uint64_t requests = session->counters.requests.get();
  try {
    options_.log(absl::StrCat("session ", session->session_id, ": ", session->name, " ended after ",
                              requests, requests == 1 ? " request: " : " requests: ",
                              event.error == nullptr ? "" : event.error->message()));
  } catch (const std::bad_alloc&) {
    // A line less in the log.
  }
  if (const auto held = sessions_.Close(event.channel)) Release(*held);
}

// `session`: null if the channel has gone.
void Poller::Answer(ChannelId channel, ServerSession* session, const Outcome& outcome,
                    uint32_t shard) {
  const bool holds = (outcome.header.flags & kReplyHeld) != 0;
  if (session == nullptr) {
    if (holds) Release(HeldItem{shard, outcome.header.slot, 0});
    return;
  }
  if (holds) {
    now_ns_ = clock_.NowMonotonicNs();
    if (const auto before = sessions_.Hold(channel, shard, outcome.header.slot, now_ns_)) {
      Release(*before);
    }
  }
  // Without a request id there is nothing that a reply could answer.
  if (outcome.header.request_id != 0) {
    session->counters.sent_bytes.Add(sizeof(ReplyHeader) + outcome.payload.size());
    endpoint_.Reply(channel,
                    FrameParts{std::as_bytes(std::span(&outcome.header, 1)), {}, outcome.payload});
  }
  if (outcome.ends_session) EndSession(channel, outcome);
}

void Poller::EndSession(ChannelId channel, const Outcome& last) {
  sessions_.Find(channel)->ending = true;
  const std::string why(last.payload);
  const bool malformed = last.header.status == static_cast<uint16_t>(ReplyStatus::kMalformed);
  endpoint_.Close(channel, malformed ? absl::InvalidArgumentError("malformed request: " + why)
                                     : absl::UnavailableError(why));
}

uint64_t Poller::NowUnixUs() const {
  return static_cast<uint64_t>(std::max<int64_t>(clock_.NowUnixUs(), 0));
}

void Poller::AnswerText(const Decoded& decoded, const std::function<std::string()>& text) {
  ServerSession& session = *decoded.session;
  if (decoded.request.header.argument == 0) session.text = WithoutReserve(text);
  const Outcome outcome =
      kvd::AnswerText(decoded.request, session.text, options_.limits.frame_bytes);
  Answer(decoded.channel, decoded.session, outcome, index_);
  if (decoded.request.header.argument + outcome.payload.size() >= session.text.size()) {
    session.text = std::string();
  }
}

// The key names a text; without one it is that of the sessions.
void Poller::AnswerSessions(const Decoded& decoded) {
  const std::string_view which = decoded.request.key;
  if (which.empty()) return AnswerText(decoded, options_.sessions_text);
  if (which == kSlowLogText) return AnswerText(decoded, options_.slow_text);
  Answer(decoded.channel, decoded.session,
         AnswerError(decoded.request.header, ReplyStatus::kUnsupported, "there is no such text"),
         index_);
}

void Poller::AnswerKick(const Decoded& decoded) {
  const absl::StatusOr<uint64_t> ended =
      options_.kick(decoded.request.key, decoded.session->session_id);
  Answer(decoded.channel, decoded.session,
         ended.ok() ? kvd::AnswerKick(decoded.request, *ended)
                    : AnswerError(decoded.request.header, ReplyStatus::kUnsupported,
                                  ToStd(ended.status().message())),
         index_);
}

void Poller::RefuseFrame(const Decoded& decoded) {
  const Outcome outcome = AnswerBadFrame(decoded.request, decoded.error);
  if (outcome.ends_session) counters_.malformed.Add(1);
  Answer(decoded.channel, decoded.session, outcome, index_);
}

}  // namespace kvd
