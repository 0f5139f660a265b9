// stat on a terminal: what a server is and holds, on one screen.
#pragma once

#include <string>
#include <string_view>

#include "client/cli/store.h"

namespace kvd::cli {

// At most 24 lines of 80 columns, whatever the server sent; of a statistic that it does not have
// nothing is said. `target`: where it is, for people.
std::string StatScreen(const KeyValueStore::Statistics& statistics, std::string_view target);

}  // namespace kvd::cli
