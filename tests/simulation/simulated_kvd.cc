#include "tests/simulation/simulated_kvd.h"

#include <cstring>
#include <utility>

#include "client/internal/client_factory.h"
#include "common/base/status_macros.h"
#include "common/protocol/handshake.h"
#include "tests/simulation/uncounted.h"

namespace kvd::test {

absl::StatusOr<std::unique_ptr<SimulatedKvd>> SimulatedKvd::Create(const Options& options) {
  std::unique_ptr<SimulatedKvd> kvd(new SimulatedKvd(options));
  KVD_RETURN_IF_ERROR(kvd->Start());
  return kvd;
}

absl::Status SimulatedKvd::Start() {
  RegionOptions region;
  region.memory_bytes = options_.memory_bytes;
  region.hugepages = HugepagePolicy::kOff;
  region.shard_count = options_.pollers;
  KVD_ASSIGN_OR_RETURN(region_, Region::Create(region));
  KVD_RETURN_IF_ERROR(region_->StartLifeline());

  AdmissionPolicy::Options admission;
  admission.geometry = region_->geometry();
  admission.max_value_bytes = options_.max_value_bytes;
  admission.wants_hits = options_.evict;
  admission_ = std::make_unique<AdmissionPolicy>(admission, clock_);

  PollerOptions poller;
  poller.geometry = region_->geometry();
  poller.limits.max_value_bytes = options_.max_value_bytes;
  poller.client_known = [this](uint64_t client_id) { return admission_->KnowsClient(client_id); };
  for (uint32_t i = 0; i < options_.pollers; ++i) {
    KVD_ASSIGN_OR_RETURN(auto shard,
                         Shard::Create(*region_, i, clock_, ShardOptions{.evict = options_.evict}));
    shards_.push_back(std::move(shard));
    endpoints_.push_back(std::make_unique<SimulatedEndpoint>());
    endpoints_.back()->set_on_gone([this](uint64_t session_id) { admission_->Gone(session_id); });
    KVD_ASSIGN_OR_RETURN(
        auto made, Poller::Create(poller, i, *endpoints_.back(), *shards_.back(), clock_, peers_));
    peers_.push_back(made.get());
    pollers_.push_back(std::move(made));
  }
  return absl::OkStatus();
}

SimulatedKvd::~SimulatedKvd() {
  for (const auto& poller : pollers_) poller->RequestStop();
}

// What the pollers still do is done to memory that nobody looks at, so that they hold nothing of
// one another any more.
void SimulatedKvd::Die() {
  for (const auto& endpoint : endpoints_) endpoint->Break("kvd is gone");
  while (Turn()) continue;
}

bool SimulatedKvd::Turn() {
  bool worked = false;
  if (count_turns_) Counting::Begin();
  for (const auto& poller : pollers_) worked |= poller->Turn();
  if (count_turns_) Counting::End();
  return worked;
}

absl::StatusOr<std::unique_ptr<ClientChannel>> SimulatedKvd::Open(const Hello& hello, bool mapped) {
  auto link = std::make_shared<SimulatedLink>();
  link->peer = {.transport = "simulated", .address = "here", .pid = 0, .uid = 0, .gid = 0};
  link->hello = hello;
  link->region = std::span(region_->base(), region_->bytes());
  const Welcome welcome = admission_->Admit(link->peer, hello);
  KVD_RETURN_IF_ERROR(ParseWelcome(std::as_bytes(std::span(&welcome, 1)), link->welcome));
  endpoints_[next_poller_++ % endpoints_.size()]->Open(link);
  if (options_.on_link) options_.on_link(link);
  const auto turn = options_.turn ? options_.turn : [this] { return Turn(); };
  return std::make_unique<SimulatedChannel>(std::move(link), mapped, turn);
}

absl::StatusOr<std::unique_ptr<Client>> SimulatedKvd::Connect(bool mapped,
                                                              const ClientOptions& options) {
  return ClientFactory::Connect(
      "rdma:simulated:1", options,
      [this, mapped](const Target&, const Hello& hello, const ClientOptions&, int64_t) {
        return Open(hello, mapped);
      });
}

}  // namespace kvd::test
