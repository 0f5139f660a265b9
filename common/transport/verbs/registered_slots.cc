#include "common/transport/verbs/registered_slots.h"

#include <utility>

#include "common/base/status_macros.h"

namespace kvd::verbs {

absl::Status RegisteredSlots::Reserve(size_t count) {
  while (free_.size() < count) KVD_RETURN_IF_ERROR(Grow());
  return absl::OkStatus();
}

absl::Status RegisteredSlots::Grow() {
  KVD_ASSIGN_OR_RETURN(RegisteredPages slab, RegisteredPages::Create(pd_, kSlabSlots * slot_bytes_,
                                                                     IBV_ACCESS_LOCAL_WRITE));
  const auto first = static_cast<uint32_t>(slabs_.size() * kSlabSlots);
  slabs_.push_back(std::move(slab));
  for (uint32_t i = kSlabSlots; i-- > 0;) free_.push_back(first + i);
  return absl::OkStatus();
}

}  // namespace kvd::verbs
