// Clients whose channels somebody else makes: a simulated network, or a test.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/internal/connector.h"
#include "client/kv_client.h"

namespace kvd {

class ClientFactory {
 public:
  // As Client::Connect, by channels from `opener`, which the client keeps.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(std::string_view target,
                                                         const ClientOptions& options,
                                                         ChannelOpener opener);
};

}  // namespace kvd
