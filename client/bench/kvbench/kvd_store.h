// A kvd, through its client library.
#pragma once

#include <cstddef>
#include <string>

#include "client/bench/kvbench/store.h"

namespace kvd::bench {

// `in_flight`: operations that a client will have under way at once.
StoreMaker KvdStores(std::string target, const ClientOptions& options, size_t in_flight);

// The value of a statistic; empty if there is none of that name.
std::string StatisticOf(const Store::Statistics& statistics, std::string_view name);

}  // namespace kvd::bench
