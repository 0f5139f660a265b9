// What goes into a shard's operations and what comes out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/slot.h"
#include "server/store/item_writer.h"
#include "server/store/size_classes.h"

namespace kvd {

enum class StoreStatus : uint8_t {
  kOk,
  kNotFound,         // the key has no item, and the operation or its condition needs one
  kConditionFailed,  // the key has an item that does not meet the condition: `version` is its
  kTooLarge,         // the value would become longer than it may
  kNotNumber,        // the value is not a signed 64-bit number in canonical decimal
  kOverflow,         // the sum is not a signed 64-bit number
  kDamaged,          // the item's bytes are not what was written: the memory changed by itself
  kNoSpace,          // the region is full, and a shard that evicts found too little that could go
};

struct ShardOptions {
  bool evict = false;  // what was not used for long makes room, instead of kNoSpace
};

// What a write asks of the item that is there. None, or one.
enum class WriteCondition : uint8_t {
  kNone,
  kIfAbsent,   // otherwise kConditionFailed
  kIfPresent,  // otherwise kNotFound
  kIfVersion,  // otherwise kConditionFailed, or kNotFound if there is no item
};

struct StoreOptions {
  WriteCondition condition = WriteCondition::kNone;
  uint64_t version = 0;  // kIfVersion: the one that it must have
  bool joins = false;    // what is written is put to the value that is there
  ItemExtras extras;     // of the item that is written
};

// What became of a write. On every status but kOk nothing has changed (but for what was evicted).
struct StoreResult {
  StoreStatus status = StoreStatus::kOk;
  uint64_t version = 0;         // of the write; a DELETE has one too. kConditionFailed: of the item
  Slot slot = kEmptySlot;       // where the item lies now; empty if there is none
  uint64_t expiry_unix_us = 0;  // of the item that was written
  int64_t number = 0;           // Increment: the new value
};

// Counters for the statistics; written by the owner, read by anybody (relaxed atomics inside).
struct ShardStats {
  uint64_t items = 0;
  uint64_t user_bytes = 0;      // keys and values of live items
  uint64_t local_items = 0;     // items that lie in their bucket: one READ
  uint64_t expiring_items = 0;  // items that have an expiry
  uint64_t buckets = 0;
  uint64_t overflow_headers = 0;
  uint64_t borrowed_places = 0;  // items and overflow headers in the space of other buckets
  uint64_t index_bytes = 0;      // segments of buckets
  uint64_t heap_bytes = 0;       // pages the heap holds
  uint64_t heap_used_bytes = 0;  // of these, in items and overflow headers
  uint64_t puts = 0, deletes = 0, overwrites_in_place = 0, overwrites_moved = 0, splits = 0,
           merges = 0, no_space = 0;
  uint64_t damaged_items_met = 0;  // by operations that ended with kDamaged for it
  uint64_t index_bytes_given_back = 0;
  uint64_t expired_items = 0;  // that were taken away because their time had come
  uint64_t expired_bytes = 0;  // that they occupied
  uint64_t evicted_items = 0, evicted_bytes = 0;
  uint64_t items_looked_at = 0;  // in runs of pages, for what should be evicted
  uint64_t segments_moved = 0;   // of the index, out of the way of something long
  // Of heap_bytes, by the size of objects (SizeGroupOf), and of these what objects occupy.
  std::array<uint64_t, kSizeGroupCount> heap_held_of = {};
  std::array<uint64_t, kSizeGroupCount> heap_used_of = {};
};

// READs that cold GETs of all items would take, each item once; and those of a key that is not
// there, on average.
struct ReadCost {
  uint64_t items = 0;
  uint64_t reads = 0;
  double reads_per_miss = 0;
};

// An item's memory that is being filled (a PUT whose value is pulled from the peer). Move-only
// token; give it to Commit or Abort exactly once.
struct Reservation {
  std::string_view key;        // as stored in the region
  std::byte* value = nullptr;  // value_len bytes to fill
  uint64_t value_len = 0;
  uint64_t hash = 0;
  Slot slot = kEmptySlot;
  StoreOptions options;

  std::string_view filled() const { return {reinterpret_cast<const char*>(value), value_len}; }
};

}  // namespace kvd
