// What clients say of what they read by themselves.
#include <cstring>
#include <new>

#include "common/protocol/client_report.h"
#include "server/poller/poller.h"

namespace kvd {
namespace {

// Nobody waits for hits, so credits do not bound how many are on their way to other pollers; beyond
// this they are dropped: they are a sample anyway.
constexpr size_t kHitsUnderWayMax = 256;

uint64_t HashAt(std::string_view hashes, size_t at) {
  uint64_t hash;
  std::memcpy(&hash, hashes.data() + at, sizeof(hash));
  return hash;
}

}  // namespace

void Poller::ExecuteHits(const Decoded& decoded) {
  ClientReport report;
  const FrameError error = DecodeReport(decoded.request, report);
  if (error != nullptr) {
    return Answer(decoded.channel, decoded.session,
                  AnswerError(decoded.request.header, ReplyStatus::kUnsupported, error), index_);
  }
  SessionCounters& counters = decoded.session->counters;
  const uint64_t disbelieved = counters.disbelieved_reports();
  counters_.reported.Add(counters.Note(report.counts, taken_ns_));
  counters_.disbelieved_reports.Add(counters.disbelieved_reports() - disbelieved);
  Answer(decoded.channel, decoded.session, AnswerHits(decoded.request, shard_.evicts()), index_);
  if (shard_.evicts()) PassOn(report.hashes);
}

void Poller::PassOn(std::string_view hashes) {
  counters_.sampled_hits.Add(hashes.size() / sizeof(uint64_t));
  for (uint32_t owner = 0; owner < peers_.size(); ++owner) {
    if (owner == index_) {
      NoteHits(hashes);
    } else if (forwards_out_ < kHitsUnderWayMax) {
      SendHits(hashes, owner);
    }
  }
}

void Poller::SendHits(std::string_view hashes, uint32_t owner) {
  Forward* forward = NewForward();
  forward->step = Forward::Step::kHits;
  forward->answered = true;
  forward->owner = owner;
  forward->bytes.clear();
  try {
    for (size_t at = 0; at < hashes.size(); at += sizeof(uint64_t)) {
      if (ShardOf(HashAt(hashes, at), options_.geometry.shard_count) == owner) {
        forward->bytes.append(hashes.substr(at, sizeof(uint64_t)));
      }
    }
  } catch (const std::bad_alloc&) {
    Recycle(forward);
    throw;
  }
  if (forward->bytes.empty()) return Recycle(forward);
  Post(forward);
}

// Those of other shards are met by nothing there.
void Poller::NoteHits(std::string_view hashes) {
  for (size_t at = 0; at < hashes.size(); at += sizeof(uint64_t)) {
    const uint64_t hash = HashAt(hashes, at);
    if (ShardOf(hash, options_.geometry.shard_count) == index_) shard_.NoteHit(hash);
  }
}

}  // namespace kvd
