// Values that an endpoint READs from its peers' memory into their place.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/transport/verbs/server_event_batch.h"
#include "common/transport/verbs/verbs_server_endpoint.h"

namespace kvd::verbs {

absl::Status VerbsServerEndpoint::Pull(ChannelId id, const PullSource& source, std::byte* into,
                                       uint64_t pull_id) {
  Channel* channel = Find(id);
  if (channel == nullptr || channel->state != Channel::State::kOpen) {
    return absl::UnavailableError("the channel has ended");
  }
  if (source.length == 0 || source.address + source.length < source.address) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pull of ", source.length, " bytes at ", source.address));
  }
  KVD_CHECK(options_.device->region.Contains(into, source.length));
  PullJob job;
  job.id = pull_id;
  job.address = source.address;
  job.key = source.key;
  job.length = source.length;
  job.into = into;
  channel->pulls.push_back(job);
  PumpPulls(*channel);
  return absl::OkStatus();
}

void VerbsServerEndpoint::PumpPulls(Channel& channel) {
  for (PullJob& job : channel.pulls) {
    while (job.posted_bytes < job.length) {
      if (channel.reads_under_way >= channel.reads_max ||
          channel.sends.room() <= Channel::kReservedSends)
        break;
      const uint64_t bytes =
          std::min(options_.limits.read_piece_bytes, job.length - job.posted_bytes);
      channel.sends.AddRead({job.into + job.posted_bytes, options_.device->region.lkey(),
                             static_cast<uint32_t>(bytes)},
                            job.address + job.posted_bytes, job.key, kPullCookie);
      channel.sends.SignalLast();  // each: the next piece goes out when one has come
      job.posted_bytes += bytes;
      ++job.under_way;
      ++channel.reads_under_way;
    }
    if (job.posted_bytes < job.length) break;
  }
  PostAll(channel);
}

void VerbsServerEndpoint::EmitPulls(Batch& batch) {
  while (!done_pulls_.empty() && batch.room() > 0) {
    const DonePull done = done_pulls_.front();
    done_pulls_.pop_front();
    ServerEvent& event = batch.Add(ServerEvent::Kind::kPullDone, done.channel);
    event.pull_id = done.id;
    event.ok = true;
  }
}

}  // namespace kvd::verbs
