// What the first READ of a remote GET tells in the usual cases, in as few instructions as it takes:
// the item lies where it lay, or in its bucket. It only ever says "found", in the words of
// JudgeItem like everybody else; whatever else comes is left to GetMachine, which is given the same
// bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client/internal/session.h"
#include "common/layout/bucket.h"
#include "common/protocol/judge_item.h"
#include "common/protocol/match_tags.h"

namespace kvd {

// Exactly the item if its place is remembered, else the whole bucket; of length 0 if GetMachine has
// to find out. Never outside of the region, whatever is remembered.
[[gnu::always_inline]] inline GetMachine::Read FirstReadOf(const Session& session, uint64_t hash,
                                                           Slot remembered) {
  if (remembered != kEmptySlot) {
    const bool readable = session.map.Plausible(remembered);
    return {LocationOf(remembered), readable ? ItemBytesOf(remembered) : 0,
            GetMachine::Into::kItem};
  }
  const RegionOffset bucket = session.map.OffsetOfBucketOf(hash);
  const bool known = ToBytes(bucket) != 0 && session.whole_buckets;
  return {bucket, known ? session.map.geometry().bucket_bytes : 0, GetMachine::Into::kBucket};
}

// `bytes`: of the item that `slot` names. True: `item` is the key's, with views into `bytes`.
[[gnu::always_inline]] inline bool FoundAt(const Session& session, std::string_view key, Slot slot,
                                           std::span<const std::byte> bytes, ItemView& item) {
  return JudgeItem(bytes, session.Expect(LocationOf(slot), key), item) == ItemVerdict::kCurrent;
}

// `bytes`: of the whole bucket. True: `item` is the key's, with views into `bytes`, and `slot`
// names it.
[[gnu::always_inline]] inline bool FoundInBucket(const Session& session, std::string_view key,
                                                 uint64_t hash, RegionOffset bucket,
                                                 std::span<const std::byte> bytes, ItemView& item,
                                                 Slot& slot) {
  const auto& header = *reinterpret_cast<const BucketHeader*>(bytes.data());
  const uint32_t matches = MatchTags(header.slots, SlotTag(hash));
  if (matches == 0) return false;
  slot = header.slots[std::countr_zero(matches)];
  // Wraps to a huge number where the item lies before the bucket.
  const uint64_t in_bucket = ToBytes(LocationOf(slot)) - ToBytes(bucket);
  const uint64_t item_bytes = ItemBytesOf(slot);
  if (in_bucket >= bytes.size() || item_bytes > bytes.size() - in_bucket) return false;
  return FoundAt(session, key, slot, bytes.subspan(in_bucket, item_bytes), item);
}

// Begins a GET by `machine` after a first READ at `offset` that did not settle it; its `bytes`, if
// any, are used where they are what the machine would read first.
inline GetMachine::Need StartAfter(GetMachine& machine, std::string_view key, uint64_t hash,
                                   Slot remembered, RegionOffset offset,
                                   std::span<const std::byte> bytes) {
  const GetMachine::Need need =
      remembered == kEmptySlot ? machine.Start(key, hash) : machine.StartAt(key, hash, remembered);
  const bool read_already = need == GetMachine::Need::kRead && !bytes.empty() &&
                            machine.read().offset == offset &&
                            machine.read().length == bytes.size();
  return read_already ? machine.Resume(bytes) : need;
}

}  // namespace kvd
