// What flags of other stores' tools are called here.
#pragma once

#include <functional>
#include <string_view>

namespace kvd::cli {

// "--server" for "host", "--ttl" for "ex". `name` without its dashes, with underscores; only
// what goes with a flag for which `is_known` holds. Empty if nothing comes to mind.
std::string_view MeaningOfForeignFlag(std::string_view name,
                                      const std::function<bool(std::string_view)>& is_known);

}  // namespace kvd::cli
