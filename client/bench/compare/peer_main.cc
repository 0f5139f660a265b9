// peerbench: kvbench's loads, run against the stores that kvd is compared with.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/bench/compare/lmdb_store.h"
#include "client/bench/compare/map_store.h"
#include "client/bench/compare/memcached_store.h"
#include "client/bench/compare/redis_store.h"
#include "client/bench/kvbench/application.h"

namespace kvd::bench {
namespace {

absl::StatusOr<StoreMaker> Stores(const Options& options) {
  const size_t colon = options.server.find(':');
  const std::string kind = options.server.substr(0, colon);
  const std::string place = colon == std::string::npos ? "" : options.server.substr(colon + 1);
  if (kind == "memcached") return MemcachedStores(place);
  if (kind == "redis") return RedisStores(place);
  const bool is_map = kind == "map";
  if ((is_map || kind == "lmdb") && options.workload.processes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--server=", kind, " is within one process; leave out --processes"));
  }
  if (is_map) return MapStores(options.workload.clients);
  if (kind == "lmdb") return LmdbStores(place);
  return absl::InvalidArgumentError(absl::StrCat(
      "--server=", options.server,
      " is not understood; give memcached:PLACE, redis:PLACE (a socket's path or HOST:PORT), "
      "lmdb:DIRECTORY or map:"));
}

}  // namespace
}  // namespace kvd::bench

int main(int argc, char** argv) {
  const kvd::bench::Program peerbench = {
      .name = "peerbench",
      .summary =
          "kvbench's loads against other stores, --server=memcached:PLACE, redis:PLACE, "
          "lmdb:DIRECTORY\n"
          "or map: (absl::flat_hash_map). PLACE is a socket's path or HOST:PORT.",
      .stores = kvd::bench::Stores,
      .target = [](const kvd::bench::Options& options) { return options.server; },
  };
  return kvd::bench::RunMain(peerbench, argc, argv);
}
