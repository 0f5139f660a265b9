#include "client/internal/async_operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/item_result.h"
#include "client/internal/reply_status.h"
#include "client/internal/transfer_time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

constexpr uint32_t kAdvancesPerClock = 32;

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

}  // namespace

absl::Status PutInPlace(const ItemView& item, BufferMemory& buffer) {
  if (item.value.size() > buffer.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("the value has ", item.value.size(), " bytes, the buffer ", buffer.size()));
  }
  const uint8_t flags = static_cast<uint8_t>((item.expiry_unix_us != 0 ? kItemHasExpiry : 0) |
                                             (item.user_flags != 0 ? kItemHasUserFlags : 0) |
                                             (item.value.size() > UINT32_MAX ? kItemLongValue : 0));
  buffer.bytes_before_key = BytesBeforeKey(flags, item.key.size(), item.value.size());
  auto* const data = reinterpret_cast<char*>(buffer.data());
  if (item.value.data() != data && !item.value.empty()) {
    std::memmove(data, item.value.data(), item.value.size());
  }
  return absl::OkStatus();
}

AsyncOperations::~AsyncOperations() {
  for (Live& live : live_) {
    if (live.stage == Stage::kRequested) connection_.requests().Withdraw(live.request);
  }
}

void AsyncOperations::Start(std::unique_ptr<AsyncOperation> operation) {
  next_deadline_ns_ = std::min(next_deadline_ns_, operation->deadline_ns);
  live_.emplace_front();
  Live& live = live_.front();
  live.self = live_.begin();
  live.operation = std::move(operation);
  live.request.owner = &live;
  ++waiting_;
  if (live.operation->is_get) ++counters_.gets;
  Begin(live);
}

void AsyncOperations::LeaveToParent() {
  parents_live_.swap(live_);
  parents_done_.swap(done_);
  waiting_ = 0;
  next_deadline_ns_ = INT64_MAX;
}

void AsyncOperations::Refuse(std::unique_ptr<AsyncOperation> operation, absl::Status status) {
  operation->result.status = std::move(status);
  done_.push_back(std::move(operation));
}

// From kWaiting on, if there is a session.
void AsyncOperations::Begin(Live& live) {
  if (!live.operation->is_get) {
    --waiting_;
    live.stage = Stage::kRequested;
    live.request.header = live.operation->header;
    live.request.key = live.operation->key;
    live.request.payload = live.operation->payload;
    live.request.deadline_ns = live.operation->deadline_ns;
    if (const auto& buffer = live.operation->buffer; buffer != nullptr) {
      live.request.buffer = buffer;
      live.request.payload = {reinterpret_cast<const char*>(buffer->data()),
                              live.operation->buffer_payload_bytes};
    }
    connection_.requests().Submit(live.request);
    return;
  }
  if (Session* session = connection_.session()) {
    --waiting_;
    BeginGet(live, *session);
  }
}

void AsyncOperations::BeginGet(Live& live, Session& session) {
  const std::string_view key = live.operation->key;
  live.hash = session.Hash(key);
  live.remembered = session.locations->Find(live.hash);
  live.stage = Stage::kReading;
  if (session.mapped()) {
    if (FindInWindow(live, session)) return;
    return Ask(live);
  }
  if (!TakeSlot(live, session)) return;
  Step(live, First(live, live.slot->machine));
}

GetMachine::Need AsyncOperations::First(const Live& live, GetMachine& machine) {
  const std::string_view key = live.operation->key;
  if (live.remembered == kEmptySlot) return machine.Start(key, live.hash);
  return machine.StartAt(key, live.hash, live.remembered);
}

// False: the operation has ended for want of memory.
bool AsyncOperations::TakeSlot(Live& live, Session& session) {
  const AsyncOperation& operation = *live.operation;
  absl::StatusOr<ReadSlot*> slot = session.slots.Take();
  absl::Status status = slot.status();
  if (status.ok() && operation.buffer != nullptr) {
    status = operation.buffer->RegisterWith(session.registrar).status();
    if (!status.ok()) session.slots.Give(*slot);
  }
  if (!status.ok()) {
    Finish(live, std::move(status));
    return false;
  }
  live.slot = *slot;
  live.slot->place = operation.buffer;
  live.slot->key_bytes = operation.key.size();
  return true;
}

// Loads take no time worth waiting for. False: the server has to be asked.
bool AsyncOperations::FindInWindow(Live& live, Session& session) {
  GetMachine& machine = session.machine;
  session.reader.PlaceItemsIn(live.operation->buffer, live.operation->key.size());
  const auto need = session.reader.Run(machine, First(live, machine), INT64_MAX);
  session.reader.PlaceItemsIn(nullptr, 0);
  if (!need.ok()) {
    live.stage = Stage::kWaiting;
    ++waiting_;
    if (connection_.EndIfBroken()) return true;  // it begins anew in the next session
    --waiting_;
    Finish(live, need.status());
  } else if (*need == GetMachine::Need::kFound) {
    FinishItem(live, machine.item(), machine.slot());
  } else if (*need == GetMachine::Need::kAbsent) {
    FinishAbsent(live, session);
  } else {
    return false;
  }
  return true;
}

void AsyncOperations::Step(Live& live, GetMachine::Need need) {
  GetMachine& machine = live.slot->machine;
  switch (need) {
    case GetMachine::Need::kFound:
      return FinishItem(live, machine.item(), machine.slot());
    case GetMachine::Need::kAbsent:
      return FinishAbsent(live, *connection_.session());
    case GetMachine::Need::kAskServer:
      return Ask(live);
    case GetMachine::Need::kRead:
      break;
  }
  const GetMachine::Read& read = machine.read();
  const absl::StatusOr<std::byte*> into = live.slot->BufferFor(read);
  if (!into.ok()) return Finish(live, into.status());
  if (const int64_t allowance_ns = TransferAllowanceNs(read.length);
      allowance_ns != 0 && std::exchange(live.operation->allows_for_size, false)) [[unlikely]] {
    live.operation->deadline_ns += std::min(allowance_ns, INT64_MAX - live.operation->deadline_ns);
  }
  Session& session = *connection_.session();
  session.reader.CountRead(read.length);
  ReadTicket& ticket = live.slot->ticket;
  ticket.offset = read.offset;
  ticket.length = read.length;
  ticket.into = *into;
  ticket.owner = this;
  ticket.context = &live;
  session.reads.Submit(ticket);
}

void AsyncOperations::OnRead(ReadTicket& ticket) {
  Live& live = *static_cast<Live*>(ticket.context);
  if (!ticket.ok) return;  // the session ends, and the operation begins anew
  Step(live, live.slot->machine.Resume(std::span<const std::byte>(ticket.into, ticket.length)));
}

// A GET by request.
void AsyncOperations::Ask(Live& live) {
  ++counters_.gets_by_request;
  GiveSlot(live);
  live.stage = Stage::kRequested;
  live.request.header = RequestHeader{};
  live.request.header.opcode = static_cast<uint8_t>(Opcode::kGet);
  live.request.key = live.operation->key;
  connection_.requests().Submit(live.request);
}

void AsyncOperations::OnReply(Live& live) {
  if (!live.request.status.ok()) return Finish(live, live.request.status);
  absl::Status status =
      StatusOfReply({live.request.reply, live.request.reply_payload},
                    {live.operation->payload.size(), connection_.server_evicts()});
  if (!status.ok()) {
    live.operation->result.info.version = live.request.reply.version;
    return Finish(live, std::move(status));
  }
  if (live.operation->is_get) return OnGetReply(live);
  OnWriteReply(live);
}

void AsyncOperations::OnGetReply(Live& live) {
  const ReplyHeader& reply = live.request.reply;
  if ((reply.flags & kReplyInline) != 0) {
    ItemView item;
    item.version = reply.version;
    item.value = live.request.reply_payload;
    item.expiry_unix_us = reply.expiry_unix_us;
    item.user_flags = reply.user_flags;
    return FinishItem(live, item, reply.slot);
  }
  if ((reply.flags & kReplyHeld) == 0) {
    return Finish(
        live, absl::DataLossError("the server answered a GET with neither a value nor a location"));
  }
  Session* session = connection_.session();
  if (session == nullptr) return Ask(live);
  live.held = true;
  if (session->mapped()) {
    GetMachine& machine = session->machine;
    const auto need = session->reader.Run(
        machine, machine.StartHeld(live.operation->key, live.hash, reply.slot, reply.version),
        INT64_MAX);
    if (need.ok() && *need == GetMachine::Need::kFound) {
      FinishItem(live, machine.item(), machine.slot());
    } else {
      Ask(live);
    }
  } else {
    if (!TakeSlot(live, *session)) return;
    live.stage = Stage::kReading;
    return Step(live, live.slot->machine.StartHeld(live.operation->key, live.hash, reply.slot,
                                                   reply.version));
  }
}

void AsyncOperations::OnWriteReply(Live& live) {
  const ReplyHeader& reply = live.request.reply;
  Completion& result = live.operation->result;
  result.info.version = reply.version;
  result.info.expiry_unix_us = static_cast<int64_t>(reply.expiry_unix_us);
  result.number = static_cast<int64_t>(reply.result);
  if (Session* session = connection_.session()) {
    session->locations->Remember(session->Hash(live.operation->key), reply.slot);
  }
  Finish(live, absl::OkStatus());
}

void AsyncOperations::FinishItem(Live& live, const ItemView& item, Slot slot) {
  if (std::exchange(live.held, false)) {
    RequestHeader release{};
    release.opcode = static_cast<uint8_t>(Opcode::kRelease);
    connection_.requests().Notify(release, {});
  }
  ++counters_.hits;
  if (item.expiry_unix_us != 0) connection_.RefreshClock();
  AsyncOperation& operation = *live.operation;
  Completion& result = operation.result;
  result.info = {item.version, item.user_flags, static_cast<int64_t>(item.expiry_unix_us)};
  result.length = item.value.size();
  if (Session* session = connection_.session(); session != nullptr && slot != kEmptySlot) {
    if (live.stage == Stage::kReading) {
      connection_.NoteHit(live.hash, item.value.size());
      live.known = slot == live.remembered;
      if (live.known) ++counters_.location_hits;
    }
    session->locations->Remember(live.hash, slot);
  }
  if (operation.buffer != nullptr) {
    if (absl::Status put = PutInPlace(item, *operation.buffer); !put.ok())
      return Finish(live, std::move(put));
  } else if (!operation.has_into) {
    AssignValue(item.value, result.value);
  } else if (item.value.size() > operation.into.size()) {
    return Finish(
        live, absl::OutOfRangeError(absl::StrCat("the value has ", item.value.size(),
                                                 " bytes, the buffer ", operation.into.size())));
  } else if (!item.value.empty()) {
    std::memcpy(operation.into.data(), item.value.data(), item.value.size());
  }
  Finish(live, absl::OkStatus());
}

void AsyncOperations::FinishAbsent(Live& live, Session& session) {
  session.locations->Forget(live.hash);
  Finish(live, absl::NotFoundError("no such key"));
}

void AsyncOperations::GiveSlot(Live& live) {
  if (live.slot != nullptr) connection_.session()->slots.Give(std::exchange(live.slot, nullptr));
}

void AsyncOperations::Observe(const Live& live, const absl::Status& status) {
  using Kind = Observer::Kind;
  observed_ = true;
  const bool is_get = live.operation->is_get;
  if (!status.ok() && !absl::IsNotFound(status) && (is_get || !absl::IsAborted(status))) return;
  Kind kind = Kind::kWrite;
  if (is_get) {
    kind = !status.ok() ? Kind::kMissedGet : live.known ? Kind::kKnownGet : Kind::kColdGet;
  }
  observer_.Add(kind, NowNs() - live.operation->observed_from_ns);
}

void AsyncOperations::Finish(Live& live, absl::Status status) {
  if (live.operation->observed_from_ns != 0) [[unlikely]]
    Observe(live, status);
  if (live.operation->is_get && absl::IsNotFound(status)) ++counters_.misses;
  GiveSlot(live);
  live.operation->buffer = nullptr;
  live.operation->result.status = std::move(status);
  done_.push_back(std::move(live.operation));
  live_.erase(live.self);
}

void AsyncOperations::Advance() {
  if (live_.empty()) return;
  bool more = true;
  while (more) {
    if (Session* session = connection_.session()) session->reads.Dispatch();
    while (Request* request = connection_.requests().TakeFinished())
      OnReply(*static_cast<Live*>(request->owner));
    if (waiting_ != 0 && connection_.session() != nullptr) BeginWaiting();
    // What was taken may have led to more READs and requests. And what this takes off the channel
    // has to be looked at before anybody sleeps: the channel will not wake for it again.
    connection_.Advance();
    const Session* const session = connection_.session();
    more = (session != nullptr && session->reads.anything_to_dispatch()) ||
           connection_.requests().anything_finished();
  }
  if (++advances_ % kAdvancesPerClock == 0) {
    if (const int64_t now_ns = NowNs(); now_ns >= next_deadline_ns_) Expire(now_ns);
  }
}

void AsyncOperations::BeginWaiting() {
  for (auto at = live_.begin(); at != live_.end();) {
    Live& live = *at++;
    if (live.stage == Stage::kWaiting) Begin(live);
  }
}

void AsyncOperations::Expire(int64_t now_ns) {
  next_deadline_ns_ = INT64_MAX;
  for (auto at = live_.begin(); at != live_.end();) {
    Live& live = *at++;
    if (live.operation->deadline_ns > now_ns) {
      next_deadline_ns_ = std::min(next_deadline_ns_, live.operation->deadline_ns);
      continue;
    }
    const absl::Status& away = connection_.connector().last_error();
    absl::Status status = absl::DeadlineExceededError("the READs were not done in time");
    if (live.stage == Stage::kWaiting) {
      --waiting_;
      if (!away.ok()) status = away;
    } else if (live.stage == Stage::kRequested) {
      status = StatusOfWithdrawn(connection_.requests().Withdraw(live.request),
                                 live.request.header.opcode, away);
    } else if (live.slot != nullptr) {
      connection_.session()->reads.GiveUp(live.slot->ticket);
    }
    Finish(live, std::move(status));
  }
}

void AsyncOperations::SessionEnds() {
  for (Live& live : live_) {
    if (live.stage != Stage::kReading) continue;
    live.slot = nullptr;  // goes with the session
    live.stage = Stage::kWaiting;
    ++waiting_;
  }
}

void AsyncOperations::FailWaiting(const absl::Status& why) {
  for (auto at = live_.begin(); at != live_.end();) {
    Live& live = *at++;
    if (live.stage != Stage::kWaiting) continue;
    --waiting_;
    Finish(live, why);
  }
}

size_t AsyncOperations::Deliver(std::span<Completion> completions) {
  size_t stored = 0;
  size_t called = 0;
  size_t without_room = 0;  // at the front; callbacks behind them are not held up
  // Those that callbacks start and that end at once wait for the next call: otherwise this might
  // never return.
  for (size_t left = done_.size(); left > 0 && without_room < done_.size(); --left) {
    const auto next = done_.begin() + static_cast<ptrdiff_t>(without_room);
    if (!(*next)->async.done && stored == completions.size()) {
      ++without_room;
      continue;
    }
    const std::unique_ptr<AsyncOperation> operation = std::move(*next);
    done_.erase(next);
    operation->result.tag = operation->async.tag;
    if (operation->async.done) {
      operation->async.done(operation->result);
      ++called;
    } else {
      completions[stored++] = std::move(operation->result);
    }
  }
  return stored + called;
}

}  // namespace kvd
