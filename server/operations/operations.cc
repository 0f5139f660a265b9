#include "server/operations/operations.h"

#include <algorithm>

namespace kvd {
namespace {

Outcome MakeOutcome(const RequestHeader& request, ReplyStatus status) {
  Outcome outcome;
  outcome.header.opcode = request.opcode;
  outcome.header.status = static_cast<uint16_t>(status);
  outcome.header.request_id = request.request_id;
  return outcome;
}

ReplyStatus StatusOf(StoreStatus status) {
  switch (status) {
    case StoreStatus::kOk:
      return ReplyStatus::kOk;
    case StoreStatus::kNotFound:
      return ReplyStatus::kNotFound;
    case StoreStatus::kConditionFailed:
      return ReplyStatus::kConditionFailed;
    case StoreStatus::kTooLarge:
      return ReplyStatus::kTooLarge;
    case StoreStatus::kNotNumber:
      return ReplyStatus::kNotNumber;
    case StoreStatus::kOverflow:
      return ReplyStatus::kOverflow;
    case StoreStatus::kDamaged:
      return ReplyStatus::kDamaged;
    case StoreStatus::kNoSpace:
      return ReplyStatus::kNoSpace;
  }
  return ReplyStatus::kInternal;
}

StoreOptions OptionsOf(const RequestHeader& header) {
  StoreOptions options;
  if ((header.flags & kRequestConditions) != 0) {
    options.condition = (header.flags & kRequestIfAbsent) != 0    ? WriteCondition::kIfAbsent
                        : (header.flags & kRequestIfPresent) != 0 ? WriteCondition::kIfPresent
                                                                  : WriteCondition::kIfVersion;
    options.version = header.compare_version;
  }
  options.extras = {header.expiry_unix_us, header.user_flags};
  return options;
}

// What a reply says about an item besides its value.
void Describe(const ItemView& item, Slot slot, ReplyHeader& reply) {
  reply.version = item.version;
  reply.slot = slot;
  reply.value_len = item.value.size();
  reply.expiry_unix_us = item.expiry_unix_us;
  reply.user_flags = item.user_flags;
  if (item.user_flags != 0) reply.flags |= kReplyUserFlags;
}

}  // namespace

Outcome AnswerError(const RequestHeader& request, ReplyStatus status, std::string_view text) {
  Outcome outcome = MakeOutcome(request, status);
  outcome.header.flags = kReplyErrorText;
  outcome.header.value_len = text.size();
  outcome.payload = text;
  return outcome;
}

Outcome AnswerBadFrame(const RequestView& request, FrameError error) {
  const RequestHeader& header = request.header;
  const bool later = header.request_id != 0 && header.opcode > kOpcodeLast;
  if (later) return AnswerError(header, ReplyStatus::kUnsupported, error);
  Outcome outcome = AnswerError(header, ReplyStatus::kMalformed, error);
  outcome.ends_session = true;
  return outcome;
}

Outcome AnswerPing(const RequestView& request, uint64_t now_unix_us) {
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.result = now_unix_us;
  outcome.header.flags = kReplyInline;
  outcome.header.value_len = request.value.size();
  // The reply's header is shorter than the request's, so whatever came in one frame fits into one.
  outcome.payload = request.value;
  return outcome;
}

Outcome AnswerHits(const RequestView& request, bool used) {
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.result = used ? 1 : 0;
  return outcome;
}

Outcome AnswerRelease(const RequestView& request) {
  return MakeOutcome(request.header, ReplyStatus::kOk);
}

Outcome AnswerNotPermitted(const RequestView& request, Role needed) {
  return AnswerError(request.header, ReplyStatus::kNotPermitted,
                     needed == Role::kAdmin
                         ? "this is for the role admin; use a key of that role"
                         : "this session may only read; use a key of the role read-write");
}

Outcome AnswerTooManyPulls(const RequestView& request) {
  return AnswerError(request.header, ReplyStatus::kBusy,
                     "too many bytes are on their way (--max_pull_bytes); send them one by one");
}

Outcome AnswerKick(const RequestView& request, uint64_t ended) {
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.result = ended;
  return outcome;
}

Outcome AnswerText(const RequestView& request, std::string_view text, uint32_t frame_bytes) {
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.value_len = text.size();
  const uint64_t from = std::min<uint64_t>(request.header.argument, text.size());
  outcome.payload = text.substr(from, frame_bytes - sizeof(ReplyHeader));
  return outcome;
}

Outcome Operations::OfWrite(const RequestHeader& request, const StoreResult& result) const {
  if (result.status == StoreStatus::kTooLarge) return TooLarge(request);
  Outcome outcome = MakeOutcome(request, StatusOf(result.status));
  outcome.header.version = result.version;
  outcome.header.slot = result.slot;
  outcome.header.expiry_unix_us = result.expiry_unix_us;
  outcome.header.result = static_cast<uint64_t>(result.number);
  return outcome;
}

Outcome Operations::TooLarge(const RequestHeader& request) const {
  Outcome outcome = MakeOutcome(request, ReplyStatus::kTooLarge);
  outcome.header.value_len = limits_.max_value_bytes;
  return outcome;
}

Outcome Operations::Execute(const RequestView& request, uint64_t hash) {
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kGet:
      return Get(request, hash);
    case Opcode::kPut:
      return Put(request, hash);
    case Opcode::kDelete:
      return OfWrite(request.header, shard_.Delete(request.key, hash, OptionsOf(request.header)));
    case Opcode::kExists:
      return Exists(request, hash);
    case Opcode::kIncrement:
      return Increment(request, hash);
    case Opcode::kAppend:
    case Opcode::kPrepend:
      return Extend(request.header, request.key, hash, request.value);
    case Opcode::kTouch:
      return Touch(request, hash);
    case Opcode::kFlush:
      return Flush(request);
    case Opcode::kHits:
    case Opcode::kPing:
    case Opcode::kStat:
    case Opcode::kRelease:
    case Opcode::kSessions:
    case Opcode::kKick:
      break;
  }
  return AnswerError(request.header, ReplyStatus::kUnsupported,
                     "this server does not have this operation");
}

Outcome Operations::Get(const RequestView& request, uint64_t hash) {
  ItemView item;
  Slot slot = kEmptySlot;
  const StoreStatus found = shard_.Find(request.key, hash, item, slot);
  if (found != StoreStatus::kOk) return MakeOutcome(request.header, StatusOf(found));
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  Describe(item, slot, outcome.header);
  if (item.value.size() <= limits_.frame_bytes - sizeof(ReplyHeader)) {
    outcome.header.flags |= kReplyInline;
    outcome.payload = item.value;
  } else {
    outcome.header.flags |= kReplyHeld;
    shard_.Hold(slot);
  }
  return outcome;
}

Outcome Operations::Exists(const RequestView& request, uint64_t hash) {
  ItemView item;
  Slot slot = kEmptySlot;
  const StoreStatus found = shard_.Find(request.key, hash, item, slot);
  if (found != StoreStatus::kOk) return MakeOutcome(request.header, StatusOf(found));
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  Describe(item, slot, outcome.header);
  return outcome;
}

[[gnu::flatten]] Outcome Operations::Put(const RequestView& request, uint64_t hash) {
  if (request.value.size() > limits_.max_value_bytes) return TooLarge(request.header);
  return OfWrite(request.header,
                 shard_.Put(request.key, hash, request.value, OptionsOf(request.header)));
}

Outcome Operations::Increment(const RequestView& request, uint64_t hash) {
  const auto delta = static_cast<int64_t>(request.header.argument);
  return OfWrite(request.header,
                 shard_.Increment(request.key, hash, delta, OptionsOf(request.header)));
}

Outcome Operations::Extend(const RequestHeader& request, std::string_view key, uint64_t hash,
                           std::string_view piece) {
  const bool append = request.opcode == static_cast<uint8_t>(Opcode::kAppend);
  return OfWrite(request, shard_.Extend(key, hash, append ? Shard::End::kBack : Shard::End::kFront,
                                        piece, limits_.max_value_bytes, OptionsOf(request)));
}

Outcome Operations::Touch(const RequestView& request, uint64_t hash) {
  const StoreResult result = shard_.Touch(request.key, hash, OptionsOf(request.header));
  const bool with_value = (request.header.flags & kRequestWithValue) != 0;
  // An item whose expiry has passed already is gone, and there is no value to be had.
  if (!with_value || result.slot == kEmptySlot) return OfWrite(request.header, result);
  return Get(request, hash);
}

Outcome Operations::Flush(const RequestView& request) {
  FlushCursor cursor = FlushCursor::Of(request.header.argument);
  if (cursor.shard != shard_.number() || !shard_.MayFlushFrom(cursor.position)) {
    return AnswerError(request.header, ReplyStatus::kUnsupported,
                       "this cursor is not of this kvd; begin again");
  }
  const Shard::Flushed flushed = shard_.Flush(request.key, cursor.position);
  cursor.position = flushed.next_position;
  if (cursor.position == 0) cursor.shard = (cursor.shard + 1) % shard_.shard_count();
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.value_len = flushed.items;
  outcome.header.result = cursor.word();
  return outcome;
}

bool Operations::BeginPulled(const RequestView& request, uint64_t hash, Reservation& reservation,
                             Outcome& outcome) {
  if (request.header.value_len > limits_.max_value_bytes) {
    outcome = TooLarge(request.header);
    return false;
  }
  StoreOptions options = OptionsOf(request.header);
  options.joins = request.header.opcode != static_cast<uint8_t>(Opcode::kPut);
  const StoreResult reserved =
      shard_.Reserve(request.key, hash, request.header.value_len, reservation, options);
  if (reserved.status == StoreStatus::kOk) return true;
  outcome = OfWrite(request.header, reserved);
  return false;
}

Outcome Operations::FinishPulled(const RequestHeader& request, const Reservation& reservation,
                                 bool pulled) {
  if (!pulled) {
    shard_.Abort(reservation);
    Outcome failed = AnswerError(request, ReplyStatus::kPullFailed,
                                 "the value could not be read from the client's buffer");
    // A client that never learns of it sends the write again: behind none that came after it.
    failed.ends_session = true;
    return failed;
  }
  if (request.opcode == static_cast<uint8_t>(Opcode::kPut)) {
    return OfWrite(request, shard_.Commit(reservation));
  }
  const Outcome outcome = Extend(request, reservation.key, reservation.hash, reservation.filled());
  shard_.Abort(reservation);
  return outcome;
}

}  // namespace kvd
