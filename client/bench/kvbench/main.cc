// kvbench: how fast a kvd is.
#include <algorithm>

#include "client/bench/kvbench/application.h"
#include "client/bench/kvbench/kvd_store.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/default_path.h"

int main(int argc, char** argv) {
  using kvd::bench::Options;
  const kvd::bench::Program kvbench = {
      .name = "kvbench",
      .summary =
          "measures how fast a kvd answers. It stores items of its own there first, and leaves "
          "them.",
      .stores = [](const Options& options) -> absl::StatusOr<kvd::bench::StoreMaker> {
        kvd::ClientOptions client = options.client;
        if (options.locations_shared) {
          KVD_ASSIGN_OR_RETURN(client.location_cache,
                               kvd::MakeLocationCache(client.location_cache_entries));
          client.location_cache_entries = 0;
        }
        return kvd::bench::KvdStores(options.server, client, options.workload.depth);
      },
      .target =
          [](const Options& options) {
            return options.server.empty() ? "shm:" + kvd::DefaultSocketPath() : options.server;
          },
  };
  return kvd::bench::RunMain(kvbench, argc, argv);
}
