#include "client/internal/client_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/first_read.h"
#include "client/internal/reply_status.h"
#include "client/internal/scanner.h"
#include "common/base/planted_fault.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

constexpr int64_t kLookNs = 250'000'000;
constexpr uint32_t kPollsPerLook = 1024;

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

void Release(RequestQueue& requests) {
  RequestHeader release{};
  release.opcode = static_cast<uint8_t>(Opcode::kRelease);
  requests.Notify(release, {});
}

}  // namespace

absl::Status CheckKey(std::string_view key) {
  if (IsKey(key)) [[likely]]
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      key.empty()
          ? "the key is empty; keys have 1 to 4096 bytes"
          : absl::StrCat("the key has ", key.size(), " bytes; keys have 1 to ", kKeyBytesMax));
}

absl::Status ClientCore::Forked() {
  return absl::FailedPreconditionError("this client was made before fork(); make one in the child");
}

absl::Status ClientCore::Over() {
  return absl::DeadlineExceededError("not begun: its deadline had passed already");
}

absl::Status ClientCore::Ready(int64_t deadline_ns) {
  if (forked()) [[unlikely]] {
    return Forked();
  }
  connection_.ConsiderBetterTarget();
  return connection_.Ensure(deadline_ns);
}

const std::byte* ClientCore::ReadAtOnce(Session& session, GetMachine::Read read,
                                        const OperationOptions& options, Begun& begun) {
  // The machine waits for an earlier READ, and then does its own.
  if (session.reader.under_way() && !Planted("READs mixed up")) [[unlikely]] {
    return nullptr;
  }
  const std::byte* const bytes = session.reader.ReadSoon(read);
  if (bytes != nullptr || !session.reader.under_way()) return bytes;
  begun.deadline_ns = DeadlineNs(options.deadline);
  return session.reader.AwaitRead(begun.deadline_ns);
}

void ClientCore::CountHit(uint64_t hash, const ItemView& item) {
  ++counted_.gets;
  ++counted_.hits;
  // Neither of these ends the session, to which the item's bytes belong.
  connection_.NoteHit(hash, item.value.size());
  if (item.expiry_unix_us != 0) [[unlikely]]
    RefreshClock();
}

[[gnu::flatten]] bool ClientCore::FindRemembered(Session& session, std::string_view key,
                                                 uint64_t hash, Slot remembered,
                                                 const OperationOptions& options, ItemView& item,
                                                 Begun& begun) {
  // One outside of the region is refused by the channel.
  const uint64_t item_bytes = ItemBytesOf(remembered);
  const std::byte* const bytes = ReadAtOnce(
      session, {LocationOf(remembered), item_bytes, GetMachine::Into::kItem}, options, begun);
  if (bytes == nullptr) return false;
  if (!FoundAt(session, key, remembered, {bytes, item_bytes}, item)) [[unlikely]] {
    session.locations->Forget(hash);
    ++counted_.stale_locations;
    return false;
  }
  ++counted_.location_hits;
  CountHit(hash, item);
  return true;
}

[[gnu::flatten]] bool ClientCore::FindInBucket(Session& session, std::string_view key,
                                               uint64_t hash, const OperationOptions& options,
                                               ItemView& item, Begun& begun) {
  const GetMachine::Read read = FirstReadOf(session, hash, kEmptySlot);
  if (read.length == 0) return false;
  const std::byte* const bytes = ReadAtOnce(session, read, options, begun);
  if (bytes == nullptr) return false;
  begun.bucket = read.offset;
  begun.bucket_bytes = {bytes, read.length};
  Slot slot;
  if (!FoundInBucket(session, key, hash, read.offset, begun.bucket_bytes, item, slot)) return false;
  session.locations->Remember(hash, slot);
  CountHit(hash, item);
  return true;
}

absl::Status ClientCore::WithItemObserved(Session& session, std::string_view key,
                                          const OperationOptions& options, UseItem use) {
  const uint64_t known_before = counted_.location_hits + window_location_hits_;
  const uint64_t misses_before = counted_.misses;
  const int64_t start_ns = NowNs();
  ItemView item;
  Begun begun;
  const absl::Status status = FindInSession(session, key, options, item, begun)
                                  ? use(item)
                                  : WithItemByMachine(key, options, begun, use);
  const int64_t end_ns = NowNs();
  const int64_t taken_ns = end_ns - start_ns;
  if (status.ok()) {
    const bool known = counted_.location_hits + window_location_hits_ != known_before;
    observer_.Add(known ? Observer::Kind::kKnownGet : Observer::Kind::kColdGet, taken_ns);
  } else if (counted_.misses != misses_before) {
    observer_.Add(Observer::Kind::kMissedGet, taken_ns);
  }
  if (observer_.TellIsDue(/*is_write=*/false)) observer_.Tell(counters());
  ReportIfDue(end_ns);
  return status;
}

absl::Status ClientCore::WithItemByMachine(std::string_view key, const OperationOptions& options,
                                           Begun begun, UseItem use) {
  if (observer_.TakeDue()) [[unlikely]]
    return WithItemObserved(*connection_.session(), key, options, use);
  KVD_RETURN_IF_ERROR(CheckKey(key));
  if (IsOver(options.deadline)) return Over();
  if (begun.deadline_ns == kDeadlineUnknown) begun.deadline_ns = DeadlineNs(options.deadline);
  const int64_t deadline_ns = begun.deadline_ns;
  ++counted_.gets;
  for (;;) {
    KVD_RETURN_IF_ERROR(Ready(deadline_ns));
    connection_.session()->reader.AllowForSize(options.deadline.count() == 0);
    absl::Status status = FindItem(*connection_.session(), key, begun, use);
    begun.bucket_bytes = {};
    if (status.ok()) {
      ++counted_.hits;
      return status;
    }
    if (absl::IsNotFound(status)) {
      ++counted_.misses;
      return status;
    }
    // A GET that lost its session begins anew in the next one.
    const bool ended = connection_.session() == nullptr || connection_.EndIfBroken();
    if (!ended || absl::IsDataLoss(status) || NowNs() >= deadline_ns) return status;
  }
}

absl::StatusOr<size_t> ClientCore::GetInto(std::string_view key,
                                           const std::shared_ptr<BufferMemory>& buffer,
                                           const OperationOptions& options) {
  size_t length = 0;
  into_ = buffer;
  const absl::Status status = WithItem(key, options, [&](const ItemView& item) {
    length = item.value.size();
    return PutInPlace(item, *buffer);
  });
  into_ = nullptr;
  if (Session* session = connection_.session()) session->reader.PlaceItemsIn(nullptr, 0);
  if (!status.ok()) return status;
  return length;
}

absl::Status ClientCore::FindItem(Session& session, std::string_view key, const Begun& begun,
                                  UseItem use) {
  if (into_ != nullptr) [[unlikely]] {
    if (!session.mapped()) KVD_RETURN_IF_ERROR(into_->RegisterWith(session.registrar).status());
    session.reader.PlaceItemsIn(into_, key.size());
  }
  const uint64_t hash = session.Hash(key);
  const Slot remembered = session.locations->Find(hash);
  GetMachine& machine = session.machine;
  const GetMachine::Need first =
      StartAfter(machine, key, hash, remembered, begun.bucket, begun.bucket_bytes);
  // Loads from a mapped region take a bounded number of rounds, so no deadline is needed until the
  // server is asked.
  KVD_ASSIGN_OR_RETURN(
      const GetMachine::Need need,
      session.reader.Run(machine, first, session.mapped() ? kNoDeadline : begun.deadline_ns));
  if (need == GetMachine::Need::kAbsent) {
    session.locations->Forget(hash);
    return absl::NotFoundError("no such key");
  }
  if (need != GetMachine::Need::kFound) return FindItemByRequest(key, begun.deadline_ns, use);
  if (machine.slot() == remembered) {
    ++counted_.location_hits;
  } else {
    session.locations->Remember(hash, machine.slot());
  }
  const ItemView item = machine.item();
  // Neither of these ends the session, to which the item's bytes belong.
  connection_.NoteHit(hash, item.value.size());
  if (item.expiry_unix_us != 0) RefreshClock();
  const absl::Status used = use(item);
  session.reader.DoneWithBytes();
  return used;
}

absl::Status ClientCore::FindItemByRequest(std::string_view key, int64_t deadline_ns, UseItem use) {
  ++counted_.gets_by_request;
  request_ = Request{};
  request_.header.opcode = static_cast<uint8_t>(Opcode::kGet);
  request_.key = key;
  KVD_RETURN_IF_ERROR(CallForOk(request_, deadline_ns));
  return UseGetReply(key, request_, deadline_ns, use);
}

absl::Status ClientCore::UseGetReply(std::string_view key, const Request& request,
                                     int64_t deadline_ns, UseItem use) {
  const ReplyHeader& reply = request.reply;
  if ((reply.flags & kReplyInline) != 0) {
    ItemView item;
    item.version = reply.version;
    item.key = key;
    item.value = request.reply_payload;
    item.expiry_unix_us = reply.expiry_unix_us;
    item.user_flags = reply.user_flags;
    return use(item);
  }
  if ((reply.flags & kReplyHeld) == 0) {
    return absl::DataLossError("the server answered a GET with neither a value nor a location");
  }
  if (Session* const session = connection_.session()) {
    GetMachine& machine = session->machine;
    const uint64_t hash = session->Hash(key);
    KVD_ASSIGN_OR_RETURN(
        const GetMachine::Need need,
        session->reader.Run(machine, machine.StartHeld(key, hash, reply.slot, reply.version),
                            deadline_ns));
    Release(connection_.requests());
    if (need == GetMachine::Need::kFound) {
      const absl::Status used = use(machine.item());
      session->reader.DoneWithBytes();
      return used;
    }
    if (need == GetMachine::Need::kAbsent) return absl::NotFoundError("no such key");
  }
  // The session, or the lease, ended before the item was read. The loop ends with the deadline that
  // Call keeps.
  return FindItemByRequest(key, deadline_ns, use);
}

// One that takes a round trip and is rare enough to be timed each time.
absl::Status ClientCore::Call(Request& request, int64_t deadline_ns) {
  const int64_t start_ns = observer_.times() ? NowNs() : 0;
  KVD_RETURN_IF_ERROR(Ready(deadline_ns));
  request.deadline_ns = deadline_ns;
  connection_.requests().Submit(request);
  connection_.Advance();
  Await(std::span(&request, 1), deadline_ns);
  if (request.status.ok() && start_ns != 0) {
    observer_.Add(
        IsWrite(request.header.opcode) ? Observer::Kind::kWrite : Observer::Kind::kRequest,
        NowNs() - start_ns);
  }
  ReportIfDue(NowNs());
  return request.status;
}

void ClientCore::Await(std::span<Request> requests, int64_t deadline_ns) {
  for (Request& request : requests) {
    while (!request.done) {
      const bool in_time = connection_.Wait(deadline_ns).ok();
      connection_.Advance();
      if (in_time || request.done) continue;
      request.status =
          StatusOfWithdrawn(connection_.requests().Withdraw(request), request.header.opcode,
                            connection_.connector().last_error());
    }
  }
}

absl::Status ClientCore::CallForOk(Request& request, int64_t deadline_ns) {
  KVD_RETURN_IF_ERROR(Call(request, deadline_ns));
  return StatusOfReply({request.reply, request.reply_payload},
                       {request.payload.size(), connection_.server_evicts()});
}

absl::StatusOr<int> ClientCore::EventFd() {
  if (forked()) return Forked();
  if (events_ == nullptr) {
    KVD_ASSIGN_OR_RETURN(events_, EventSet::Create());
  }
  return events_->fd();
}

bool ClientCore::PrepareToSleep() {
  if (forked() || events_ == nullptr) return false;
  FinishSleep();
  ReportIfDue(NowNs());
  connection_.Advance();
  async_.Advance();
  if (async_.anything_to_deliver()) return false;
  int64_t until_ns = async_.next_deadline_ns();
  Session* const session = connection_.session();
  if (session == nullptr) {
    if (async_.outstanding() != 0)
      until_ns = std::min(until_ns, connection_.connector().next_attempt_ns());
    events_->SetTimer(until_ns);
    asleep_ = true;
    return true;
  }
  if (watched_session_ != connection_.sessions()) {
    if (!events_->Watch(session->channel->event_fds())) return false;
    watched_session_ = connection_.sessions();
  }
  // A server that has gone without a word is noticed by asking, while something is waited for.
  if (async_.outstanding() != 0) until_ns = std::min(until_ns, NowNs() + kLookNs);
  events_->SetTimer(until_ns);
  asleep_ = session->channel->PrepareToSleep();
  if (!asleep_) {
    session->channel->FinishSleep();
    connection_.EndIfBroken();
  }
  return asleep_;
}

void ClientCore::FinishSleep() {
  if (!std::exchange(asleep_, false)) return;
  events_->SetTimer(INT64_MAX);
  if (Session* session = connection_.session();
      session != nullptr && watched_session_ == connection_.sessions()) {
    session->channel->FinishSleep();
    connection_.EndIfBroken();
  }
  if (const int64_t now_ns = NowNs(); now_ns >= async_.next_deadline_ns()) async_.Expire(now_ns);
}

size_t ClientCore::Poll(std::span<Completion> completions) {
  if (forked()) return async().Deliver(completions);  // what was started here, and refused
  FinishSleep();
  // Somebody who only ever polls learns here of a session that ended without a word.
  if (Session* session = connection_.session();
      session != nullptr && ++polls_ % kPollsPerLook == 0) {
    session->channel->FinishSleep();
    connection_.EndIfBroken();
  }
  if (connection_.session() == nullptr && async_.outstanding() != 0) {
    // Attempts to connect are made here; one that is not due yet costs a look at the clock.
    if (connection_.connector().next_attempt_ns() <= NowNs()) {
      if (const absl::Status made = connection_.Wait(async_.next_deadline_ns()); !made.ok())
        async_.FailWaiting(made);
    }
  }
  connection_.Advance();
  async_.Advance();
  if (async_.TakeObserved()) {
    observer_.Tell(counters());
    ReportIfDue(NowNs());
  }
  return async_.Deliver(completions);
}

size_t ClientCore::Wait(std::span<Completion> completions, int64_t timeout_ns) {
  const int64_t now_ns = NowNs();
  const int64_t until_ns = timeout_ns < kNoDeadline - now_ns ? now_ns + timeout_ns : kNoDeadline;
  for (;;) {
    const size_t count = Poll(completions);
    if (count != 0 || forked() || async_.outstanding() == 0) return count;
    const int64_t next_ns = std::min(until_ns, async_.next_deadline_ns());
    const absl::Status waited = connection_.Wait(next_ns);
    if (waited.ok()) continue;
    if (absl::IsDeadlineExceeded(waited)) {
      const int64_t after_ns = NowNs();
      async_.Expire(after_ns);
      if (after_ns >= until_ns) return Poll(completions);
    } else {
      async_.FailWaiting(waited);
    }
  }
}

absl::StatusOr<std::string> ClientCore::Scan(const Client::Visitor& visit,
                                             const ScanOptions& options) {
  if (IsOver(options.deadline)) return Over();
  const int64_t deadline_ns =
      options.deadline.count() > 0 ? DeadlineNs(options.deadline) : kNoDeadline;
  KVD_RETURN_IF_ERROR(Ready(options.deadline.count() > 0 ? deadline_ns : DeadlineNs({})));
  Session& session = *connection_.session();
  KVD_ASSIGN_OR_RETURN(ScanPosition position,
                       ParseCursor(options.cursor, session.map.geometry().incarnation));
  Scanner scanner(session.map, session.reader, deadline_ns);
  const absl::Status status = scanner.Run(position, options.count, [&](const ItemView& item) {
    if (!item.key.starts_with(options.prefix)) return Scanner::Answer::kSkip;
    return visit(item.key, item.value, InfoOf(item)) ? Scanner::Answer::kNext
                                                     : Scanner::Answer::kStop;
  });
  session.reader.DoneWithBytes();
  // What was not met was not there, which is nothing that a dead kvd's memory can say.
  const absl::Status alive = status.ok() ? session.reader.CheckAlive() : status;
  if (!alive.ok()) {
    connection_.EndIfBroken();
    return alive;
  }
  return FormatCursor(position, session.map.geometry().incarnation);
}

// Called while the caller holds an item's bytes, so this must not end the session. Also takes the
// answer to an earlier question.
void ClientCore::RefreshClock() {
  connection_.RefreshClock();
  if (connection_.clock_asked()) connection_.PumpRequests();
}

void ClientCore::Report(int64_t now_ns) {
  const ReportedCounts now = ReportedOf(counters());
  if (report_.anything_new(now) && !connection_.TellCounts(report_.SinceBegin(now))) return;
  report_.Told(now, now_ns);
}

void ClientCore::TellLast() {
  const ReportedCounts now = ReportedOf(counters());
  const ReportedCounts since_begin = report_.SinceBegin(now);
  connection_.TellLast(report_.wanted() && report_.anything_new(now) ? &since_begin : nullptr);
}

void ClientCore::SessionBegins(bool same_server) {
  observer_.SessionBegins();
  report_.Begin(connection_.takes_counts(), same_server, ReportedOf(counters()), NowNs());
}

void ClientCore::SessionEnds(Session& session) {
  AddSession(session, counted_);
  if (session.reads.anything_missing() && !session.channel->status().ok()) ++counted_.read_errors;
  async_.SessionEnds();
  multi_get_.SessionEnds();
}

void ClientCore::ConnectionFailed(const absl::Status& cause) {
  observer_.ConnectionFailed(connection_.connector().name(), cause);
}

void ClientCore::AddSession(const Session& session, ClientCounters& sum) {
  GetMachineCounters machine = session.machine.counters();
  machine += session.slots.counters();
  sum.reads += session.reader.reads();
  sum.read_bytes += session.reader.read_bytes();
  sum.read_chains += session.reads.chains();
  sum.torn_reads += machine.torn_reads;
  sum.moved_items += machine.moved_items;
  sum.redirects += machine.redirects;
  sum.confirmations += machine.confirmations;
  sum.stale_locations += machine.stale_locations;
  sum.expired += machine.expired;
}

const ClientCounters& ClientCore::counters() {
  counters_ = counted_;
  // A GET in the window is a hit; it reads the header, unless the location was known, and the item.
  const uint64_t window_gets = window_finds_ + window_location_hits_;
  counters_.gets += window_gets;
  counters_.hits += window_gets;
  counters_.location_hits += window_location_hits_;
  counters_.reads += window_gets + window_finds_;
  counters_.read_bytes += window_read_bytes_ + window_finds_ * kBucketHeaderBytes;
  counters_.requests = connection_.requests().requests();
  counters_.repeated = connection_.requests().repeats();
  counters_.reconnects = connection_.reconnects();
  if (connection_.session() != nullptr) AddSession(*connection_.session(), counters_);
  return counters_;
}

}  // namespace kvd
