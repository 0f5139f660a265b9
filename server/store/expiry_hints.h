// Which buckets hold items that expire, and when to look at them: one number a bucket, in private
// memory, so that what has lapsed is found without a walk through the region.
//
// A hint is never later than the earliest expiry in its bucket, rounded up to a second. It may be
// earlier, after an item has gone or got another expiry; then one look corrects it. Groups of
// buckets have the least of their hints, so that a look at all of a large table reads little.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace kvd {

class ExpiryHints {
 public:
  // Makes room for that many buckets, before anything is changed that a failure would have to undo.
  // Throws std::bad_alloc.
  void Reserve(uint32_t buckets);
  bool empty() const { return due_.empty(); }  // no room was ever asked for

  // The bucket got an item with that expiry. There is room for it.
  void Note(uint32_t bucket, uint64_t expiry_unix_us);
  // `bucket` takes over items of `from`.
  void Share(uint32_t bucket, uint32_t from);
  // The bucket was looked at, and this is its earliest expiry now; 0: none.
  void Correct(uint32_t bucket, uint64_t expiry_unix_us);

  // The bucket is there no more.
  void Forget(uint32_t bucket) {
    if (bucket < due_.size()) due_[bucket] = kNever;
  }

  // A bucket that is due, if there is one.
  std::optional<uint32_t> TakeDue(uint64_t now_unix_us);
  // When the next one will be; only right after TakeDue found none. UINT64_MAX: never.
  uint64_t NextDueUnixUs() const;

  // Whether an item with that expiry in the bucket will be met. For tests.
  bool Covers(uint32_t bucket, uint64_t expiry_unix_us) const;

  // The first moment at which an item with that expiry is taken for due: up to a second later.
  static uint64_t DueUnixUs(uint64_t expiry_unix_us);

 private:
  using Seconds = uint32_t;
  static constexpr Seconds kNever = std::numeric_limits<Seconds>::max();
  static constexpr uint32_t kGroup = 1024;

  static Seconds SecondsOf(uint64_t expiry_unix_us);
  void Lower(uint32_t bucket, Seconds due);

  std::vector<Seconds> due_;    // by bucket
  std::vector<Seconds> group_;  // by group: not later than any of its buckets
};

}  // namespace kvd
