#include "server/operations/once_operations.h"

namespace kvd {

bool OnceOperations::MayExecute(ReplyCache::Client& client, const RequestOrigin& origin,
                                const RequestHeader& request, Outcome& outcome) {
  const ReplyCache::Verdict verdict = client.Judge(origin.session_id, request, outcome);
  if (verdict == ReplyCache::Verdict::kExecute) [[likely]]
    return true;
  if (verdict == ReplyCache::Verdict::kSuperseded) {
    outcome = AnswerError(request, ReplyStatus::kNotPermitted, "this client has a later session");
    outcome.ends_session = true;
  }
  return false;
}

[[gnu::flatten]] Outcome OnceOperations::Execute(const RequestOrigin& origin,
                                                 const RequestView& request, uint64_t hash) {
  if (!IsWrite(request.header.opcode)) return operations_.Execute(request, hash);
  ReplyCache::Client& client = replies_.ClientOf(origin.client_id);
  Outcome outcome;
  if (!MayExecute(client, origin, request.header, outcome)) return outcome;
  outcome = operations_.Execute(request, hash);
  client.Remember(outcome, replies_.replies_max());
  return outcome;
}

bool OnceOperations::BeginPulled(const RequestOrigin& origin, const RequestView& request,
                                 uint64_t hash, Reservation& reservation, Outcome& outcome) {
  ReplyCache::Client& client = replies_.ClientOf(origin.client_id);
  if (!MayExecute(client, origin, request.header, outcome)) return false;
  if (operations_.BeginPulled(request, hash, reservation, outcome)) return true;
  client.Remember(outcome, replies_.replies_max());
  return false;
}

Outcome OnceOperations::FinishPulled(const RequestOrigin& origin, const RequestHeader& request,
                                     const Reservation& reservation, bool pulled) {
  // While the value was on its way the client may have come back and sent it again.
  ReplyCache::Client& client = replies_.ClientOf(origin.client_id);
  Outcome outcome;
  if (!MayExecute(client, origin, request, outcome)) {
    operations_.FinishPulled(request, reservation, /*pulled=*/false);
    return outcome;
  }
  outcome = operations_.FinishPulled(request, reservation, pulled);
  // What could not be fetched was not executed: a repeat brings its own buffer.
  if (pulled) client.Remember(outcome, replies_.replies_max());
  return outcome;
}

}  // namespace kvd
