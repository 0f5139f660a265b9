// Items whose time has come.
#include "server/store/shard.h"

namespace kvd {

// From here on the key is absent for everybody, whatever the reader's idea of the time.
void Shard::EraseLapsed(BucketChain& chain, SlotPlace place) {
  expired_items_.Add(1);
  expired_bytes_.Add(ItemBytesOf(chain.SlotAt(place)));
  Erase(chain, place, /*bring_home=*/true);
}

}  // namespace kvd
