// A kvd with its clients, all in one thread of one process: region, shards, pollers and admission
// are the real ones, and so is everything of the client above its channel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/kv_client.h"
#include "common/base/clock.h"
#include "server/poller/poller.h"
#include "server/session/admission_policy.h"
#include "server/store/region.h"
#include "server/store/shard.h"
#include "tests/simulation/simulated_link.h"

namespace kvd::test {

class SimulatedKvd {
 public:
  struct Options {
    uint64_t memory_bytes = uint64_t{64} << 20;
    uint32_t pollers = 1;
    bool evict = false;
    uint64_t max_value_bytes = uint64_t{1} << 20;
    const Clock* clock = &RealClock::Get();  // outlives the kvd
    // Called for each new session, before anything goes over it; may make the link a delayed one.
    std::function<void(const std::shared_ptr<SimulatedLink>&)> on_link = {};
    // What a client that waits lets happen; null: all pollers do a turn.
    std::function<bool()> turn = {};
  };

  static absl::StatusOr<std::unique_ptr<SimulatedKvd>> Create(const Options& options);
  ~SimulatedKvd();

  // `mapped`: as over shared memory; otherwise READs are posted. The client goes before this.
  absl::StatusOr<std::unique_ptr<Client>> Connect(bool mapped, const ClientOptions& options = {});

  const Geometry& geometry() const { return region_->geometry(); }

  // Every poller does one turn. False: none had anything to do.
  bool Turn();

  // As kvd dies: all sessions end, whatever is under way. Nothing of it is used after this but to
  // take it down.
  void Die();

  // A client of a connector of one's own: a session, or why there is none.
  absl::StatusOr<std::unique_ptr<ClientChannel>> Open(const Hello& hello, bool mapped);
  // Whether the instructions of the pollers' turns are counted (uncounted.h).
  void set_count_turns(bool count) { count_turns_ = count; }

  Poller& poller(size_t index) { return *pollers_[index]; }
  SimulatedEndpoint& endpoint(size_t index) { return *endpoints_[index]; }

 private:
  explicit SimulatedKvd(const Options& options) : options_(options) {}
  absl::Status Start();

  const Options options_;
  const Clock& clock_ = *options_.clock;
  std::unique_ptr<Region> region_;
  std::unique_ptr<AdmissionPolicy> admission_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<std::unique_ptr<SimulatedEndpoint>> endpoints_;
  std::vector<Poller*> peers_;
  std::vector<std::unique_ptr<Poller>> pollers_;
  size_t next_poller_ = 0;
  bool count_turns_ = false;
};

}  // namespace kvd::test
