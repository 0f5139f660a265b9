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

Outcome OfWrite(const RequestHeader& request, const WriteResult& result) {
  ReplyStatus status = ReplyStatus::kInternal;
  switch (result.status) {
    case StoreStatus::kOk:
      status = ReplyStatus::kOk;
      break;
    case StoreStatus::kNotFound:
      status = ReplyStatus::kNotFound;
      break;
    case StoreStatus::kNoSpace:
      status = ReplyStatus::kNoSpace;
      break;
  }
  Outcome outcome = MakeOutcome(request, status);
  outcome.header.version = result.version;
  outcome.header.slot = result.slot;
  return outcome;
}

// Fields that later versions of the server will act on, and that this one must not ignore.
bool AsksForMore(const RequestHeader& header) {
  return header.compare_version != 0 || header.expiry_unix_us != 0 || header.user_flags != 0 ||
         (header.flags & ~(kRequestPull | kRequestRepeat)) != 0;
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

Outcome AnswerPing(const RequestView& request) {
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.flags = kReplyInline;
  outcome.header.value_len = request.value.size();
  // The reply's header is shorter than the request's, so whatever came in one frame fits into one.
  outcome.payload = request.value;
  return outcome;
}

Outcome AnswerRelease(const RequestView& request) {
  return MakeOutcome(request.header, ReplyStatus::kOk);
}

Outcome AnswerStat(const RequestView& request, std::string_view text, uint32_t frame_bytes) {
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.value_len = text.size();
  const uint64_t from = std::min<uint64_t>(request.header.argument, text.size());
  outcome.payload = text.substr(from, frame_bytes - sizeof(ReplyHeader));
  return outcome;
}

Outcome Operations::Execute(const RequestView& request, uint64_t hash) {
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kGet:
      return Get(request, hash);
    case Opcode::kPut:
      return Put(request, hash);
    case Opcode::kDelete:
      return Delete(request, hash);
    case Opcode::kExists:
      return Exists(request, hash);
    case Opcode::kIncrement:
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kTouch:
    case Opcode::kFlush:
    case Opcode::kHits:
    case Opcode::kPing:
    case Opcode::kStat:
    case Opcode::kRelease:
      break;
  }
  return AnswerError(request.header, ReplyStatus::kUnsupported,
                     "this server does not have this operation");
}

Outcome Operations::Get(const RequestView& request, uint64_t hash) {
  ItemView item;
  Slot slot = kEmptySlot;
  if (!shard_.Find(request.key, hash, item, slot)) {
    return MakeOutcome(request.header, ReplyStatus::kNotFound);
  }
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.version = item.version;
  outcome.header.slot = slot;
  outcome.header.value_len = item.value.size();
  outcome.header.expiry_unix_us = item.expiry_unix_us;
  outcome.header.user_flags = item.user_flags;
  if (item.user_flags != 0) outcome.header.flags |= kReplyUserFlags;
  if (item.value.size() <= limits_.frame_bytes - sizeof(ReplyHeader)) {
    outcome.header.flags |= kReplyInline;
    outcome.payload = item.value;
  } else {
    outcome.header.flags |= kReplyHeld;
    shard_.Hold(slot);
  }
  return outcome;
}

bool Operations::PutIsPossible(const RequestView& request, Outcome& outcome) const {
  if (AsksForMore(request.header)) {
    outcome = AnswerError(request.header, ReplyStatus::kUnsupported,
                          "conditions, expiry and user flags are not supported");
    return false;
  }
  if (request.header.value_len > limits_.max_value_bytes) {
    outcome = MakeOutcome(request.header, ReplyStatus::kTooLarge);
    outcome.header.value_len = limits_.max_value_bytes;
    return false;
  }
  return true;
}

Outcome Operations::Put(const RequestView& request, uint64_t hash) {
  Outcome refusal;
  if (!PutIsPossible(request, refusal)) return refusal;
  return OfWrite(request.header, shard_.Put(request.key, hash, request.value));
}

bool Operations::BeginPut(const RequestView& request, uint64_t hash, Reservation& reservation,
                          Outcome& outcome) {
  if (!PutIsPossible(request, outcome)) return false;
  const StoreStatus status =
      shard_.Reserve(request.key, hash, request.header.value_len, reservation);
  if (status == StoreStatus::kOk) return true;
  outcome = OfWrite(request.header, WriteResult{status, 0, kEmptySlot});
  return false;
}

Outcome Operations::FinishPut(const RequestHeader& request, const Reservation& reservation,
                              bool pulled) {
  if (!pulled) {
    shard_.Abort(reservation);
    return AnswerError(request, ReplyStatus::kPullFailed,
                       "the value could not be read from the client's buffer");
  }
  return OfWrite(request, shard_.Commit(reservation));
}

Outcome Operations::Delete(const RequestView& request, uint64_t hash) {
  if (AsksForMore(request.header)) {
    return AnswerError(request.header, ReplyStatus::kUnsupported, "conditions are not supported");
  }
  return OfWrite(request.header, shard_.Delete(request.key, hash));
}

Outcome Operations::Exists(const RequestView& request, uint64_t hash) {
  ItemView item;
  Slot slot = kEmptySlot;
  if (!shard_.Find(request.key, hash, item, slot)) {
    return MakeOutcome(request.header, ReplyStatus::kNotFound);
  }
  Outcome outcome = MakeOutcome(request.header, ReplyStatus::kOk);
  outcome.header.version = item.version;
  outcome.header.slot = slot;
  outcome.header.value_len = item.value.size();
  return outcome;
}

}  // namespace kvd
