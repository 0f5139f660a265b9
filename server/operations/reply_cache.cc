#include "server/operations/reply_cache.h"

namespace kvd {

ReplyCache::Verdict ReplyCache::Judge(const RequestOrigin& origin, const RequestHeader& request,
                                      Outcome& outcome) {
  Client& client = clients_[origin.client_id];
  if (origin.session_id < client.session_id) return Verdict::kSuperseded;
  client.session_id = origin.session_id;
  if ((request.flags & kRequestRepeat) == 0) return Verdict::kExecute;
  for (const Reply& reply : client.replies) {
    if (reply.header.request_id != request.request_id) continue;
    outcome = Outcome{};
    outcome.header = reply.header;
    outcome.payload = reply.payload;
    return Verdict::kAnswered;
  }
  return Verdict::kExecute;
}

void ReplyCache::Remember(const RequestOrigin& origin, const Outcome& outcome) {
  Client& client = clients_[origin.client_id];
  if (client.replies.size() < replies_max_) client.replies.emplace_back();
  Reply& reply = client.replies[client.executed++ % replies_max_];
  constexpr uint8_t kBringsValue = kReplyInline | kReplyHeld;
  reply.header = outcome.header;
  reply.header.flags &= static_cast<uint8_t>(~kBringsValue);
  const bool value = (outcome.header.flags & kBringsValue) != 0;
  reply.payload.assign(value ? std::string_view() : outcome.payload);
}

void ReplyCache::Sweep(const std::function<bool(uint64_t client_id)>& known) {
  absl::erase_if(clients_, [&known](const auto& client) { return !known(client.first); });
}

}  // namespace kvd
