#include "server/operations/reply_cache.h"

#include "common/base/planted_fault.h"

namespace kvd {

ReplyCache::Verdict ReplyCache::Client::Judge(uint64_t session_id, const RequestHeader& request,
                                              Outcome& outcome) {
  if (session_id < session_id_) return Verdict::kSuperseded;
  session_id_ = session_id;
  if ((request.flags & kRequestRepeat) == 0 || Planted("no reply cache")) return Verdict::kExecute;
  for (const Reply& reply : replies_) {
    if (reply.header.request_id != request.request_id) continue;
    outcome = Outcome{};
    outcome.header = reply.header;
    outcome.payload = reply.payload;
    return Verdict::kAnswered;
  }
  return Verdict::kExecute;
}

void ReplyCache::Client::Remember(const Outcome& outcome, uint32_t replies_max) {
  if (replies_.size() < replies_max) replies_.emplace_back();
  Reply& reply = replies_[next_];
  if (++next_ == replies_max) next_ = 0;
  constexpr uint8_t kBringsValue = kReplyInline | kReplyHeld;
  reply.header = outcome.header;
  reply.header.flags &= static_cast<uint8_t>(~kBringsValue);
  const bool value = (outcome.header.flags & kBringsValue) != 0;
  if (value || outcome.payload.empty()) {
    reply.payload.clear();
  } else {
    reply.payload.assign(outcome.payload);
  }
}

void ReplyCache::Sweep(const std::function<bool(uint64_t client_id)>& known) {
  found_ = nullptr;
  std::erase_if(clients_, [&known](const auto& client) { return !known(client.first); });
}

}  // namespace kvd
