#include "server/operations/once_operations.h"

namespace kvd {

bool OnceOperations::MayExecute(const RequestOrigin& origin, const RequestHeader& request,
                                Outcome& outcome) {
  switch (replies_.Judge(origin, request, outcome)) {
    case ReplyCache::Verdict::kExecute:
      return true;
    case ReplyCache::Verdict::kAnswered:
      return false;
    case ReplyCache::Verdict::kSuperseded:
      break;
  }
  outcome = AnswerError(request, ReplyStatus::kNotPermitted, "this client has a later session");
  outcome.ends_session = true;
  return false;
}

Outcome OnceOperations::Execute(const RequestOrigin& origin, const RequestView& request,
                                uint64_t hash) {
  if (!IsWrite(request.header.opcode)) return operations_.Execute(request, hash);
  Outcome outcome;
  if (!MayExecute(origin, request.header, outcome)) return outcome;
  outcome = operations_.Execute(request, hash);
  replies_.Remember(origin, outcome);
  return outcome;
}

bool OnceOperations::BeginPulled(const RequestOrigin& origin, const RequestView& request,
                                 uint64_t hash, Reservation& reservation, Outcome& outcome) {
  if (!MayExecute(origin, request.header, outcome)) return false;
  if (operations_.BeginPulled(request, hash, reservation, outcome)) return true;
  replies_.Remember(origin, outcome);
  return false;
}

Outcome OnceOperations::FinishPulled(const RequestOrigin& origin, const RequestHeader& request,
                                     const Reservation& reservation, bool pulled) {
  // While the value was on its way the client may have come back and sent it again.
  Outcome outcome;
  if (!MayExecute(origin, request, outcome)) {
    operations_.FinishPulled(request, reservation, /*pulled=*/false);
    return outcome;
  }
  outcome = operations_.FinishPulled(request, reservation, pulled);
  // What could not be fetched was not executed: a repeat brings its own buffer.
  if (pulled) replies_.Remember(origin, outcome);
  return outcome;
}

}  // namespace kvd
