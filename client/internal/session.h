// One admitted connection of a client object and everything that is only valid while it lasts.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/internal/get_machine.h"
#include "client/internal/location_cache.h"
#include "client/internal/region_map.h"
#include "client/internal/region_reader.h"
#include "client/internal/requester.h"
#include "client/kv_client.h"
#include "client/internal/window_get.h"
#include "common/base/hash.h"
#include "common/layout/item.h"
#include "common/protocol/handshake.h"
#include "common/transport/client_channel.h"

namespace kvd {

struct Session {
  Session(std::unique_ptr<ClientChannel> admitted, const ClientOptions& options)
      : channel(std::move(admitted)),
        map(GeometryOf(channel->welcome()),
            // A slot rounds sizes up by less than 1/128.
            RoundUpItemSize(ItemBytes(kItemFlagsKnown, kKeyBytesMax, channel->welcome().max_value_bytes))),
        reader(*channel),
        requester(*channel),
        // Reading a bucket whole saves round trips; where the region is mapped there are none to save.
        machine(map, options.read_whole_buckets || channel->window().empty()),
        window_get(options.read_whole_buckets ? nullptr : channel->window().data(), map),
        locations(options.location_cache_entries),
        hash_seed(map.geometry().hash_seed()) {}

  uint64_t Hash(std::string_view key) const { return HashKey(key, hash_seed); }

  std::unique_ptr<ClientChannel> channel;
  RegionMap map;
  RegionReader reader;
  Requester requester;
  GetMachine machine;
  WindowGet window_get;
  LocationCache locations;
  const uint64_t hash_seed;
};

}  // namespace kvd
