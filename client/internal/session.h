// One admitted connection of a client object and everything that is only valid while it lasts.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "client/internal/buffer_memory.h"
#include "client/internal/get_machine.h"
#include "client/internal/location_cache.h"
#include "client/internal/read_queue.h"
#include "client/internal/read_slots.h"
#include "client/internal/region_map.h"
#include "client/internal/region_reader.h"
#include "client/internal/window_get.h"
#include "client/kv_client.h"
#include "common/base/hash.h"
#include "common/layout/item.h"
#include "common/protocol/handshake.h"
#include "common/protocol/judge_item.h"
#include "common/transport/client_channel.h"

namespace kvd {

struct Session {
  // `options.location_cache` is set. Reading a bucket whole saves round trips; where the region is
  // mapped there are none to save.
  Session(std::unique_ptr<ClientChannel> admitted, size_t target, const ClientOptions& options,
          const Clock* server_clock)
      : channel(std::move(admitted)),
        target_index(target),
        is_mapped(!channel->window().empty()),
        whole_buckets(options.read_whole_buckets || channel->window().empty()),
        map(GeometryOf(channel->welcome()),
            // A slot rounds sizes up by less than 1/128.
            RoundUpItemSize(
                ItemBytes(kItemFlagsKnown, kKeyBytesMax, channel->welcome().max_value_bytes)),
            server_clock),
        reads(*channel),
        reader(*channel, reads),
        machine(map, whole_buckets),
        slots(*channel, map, whole_buckets),
        window_get(options.read_whole_buckets ? nullptr : channel->window().data(), channel->ended(), map),
        locations(options.location_cache),
        registrar(std::make_shared<Registrar>(Registrar{.channel = channel.get()})),
        hash_seed(map.geometry().hash_seed()) {}

  uint64_t Hash(std::string_view key) const { return HashKey(key, hash_seed); }
  bool mapped() const { return is_mapped; }
  ItemExpectation Expect(RegionOffset location, std::string_view key) const {
    return {map.geometry().incarnation, location, key, 0, map.server_clock()};
  }

  std::unique_ptr<ClientChannel> channel;
  const size_t target_index;  // which of the client's targets it leads to
  const bool is_mapped;
  const bool whole_buckets;
  RegionMap map;
  ReadQueue reads;
  RegionReader reader;  // for one GET or scan at a time, which waits
  GetMachine machine;
  ReadSlots slots;  // for GETs that are started
  WindowGet window_get;
  const std::shared_ptr<LocationCache> locations;  // outlives the session; others may share it
  std::shared_ptr<Registrar> registrar;  // of buffers that outlive the session
  const uint64_t hash_seed;
};

}  // namespace kvd
