// The read path of one key as a state machine over bytes: it says what to read next and judges what was read. It does
// no I/O, so every transport drives the same one, and tests and fuzzers can feed it anything.
//
//            directory entry unknown     bucket was split or merged: look where its depth says
//          +-------------------------+      +----------------------------------------------+
//          v                         |      v                                              |
//   Start ---> bucket count/segment ----> header (or whole bucket) --> candidates' items --+--> found
//                                           ^         |                       |            |
//                                           |         v                       v            |
//                                 torn,     |     no candidate, no chain   chained headers and their items
//                                 dead,     |         |                       |
//                                 writing --+         v                       v
//                                 (bounded)         absent  <---- confirmed: first header is unchanged
//
// A hit needs no checksum of the header: the item proves itself. A miss does: the header must verify, and if anything
// was read after it (an item whose tag matched by chance, a chained header), it must be read again and be unchanged:
// what was read in between was then no moving target. After kRoundsMax rounds that settled nothing the machine asks
// for the server's help.
//
// A remembered place of a bucket may be out of date: the table has shrunk, the segment was given
// back, and what lies there now is anything. Two things are possible. The header that was left
// there says by its depth that the bucket is merged: its place is forgotten and the count word
// read, so the machine cannot be led to and fro between the two. Or it does not verify: after the
// second time in a row, place and count are asked for anew as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client/internal/region_map.h"
#include "common/layout/bucket.h"
#include "common/protocol/judge_item.h"

namespace kvd {

struct GetMachineCounters {
  uint64_t torn_reads = 0;
  uint64_t moved_items = 0;
  uint64_t redirects = 0;
  uint64_t confirmations = 0;
  uint64_t expired = 0;          // items whose time had passed
  uint64_t stale_locations = 0;  // remembered locations that did not hold the key's current item any more

  GetMachineCounters& operator+=(const GetMachineCounters& other) {
    torn_reads += other.torn_reads;
    moved_items += other.moved_items;
    redirects += other.redirects;
    confirmations += other.confirmations;
    stale_locations += other.stale_locations;
    expired += other.expired;
    return *this;
  }
};

class GetMachine {
 public:
  enum class Need : uint8_t {
    kRead,       // read() says what; then Resume with the bytes
    kFound,      // item() is the answer; its views point into the bytes last given to Resume
    kAbsent,     // the key had no item at some moment since Start
    kAskServer,  // kRoundsMax rounds were not enough: ask by request
  };

  // Where the bytes of read() must be put: a header's bytes stay needed while items are read.
  enum class Into : uint8_t { kBucket, kItem, kScratch };

  struct Read {
    RegionOffset offset{};
    uint64_t length = 0;
    Into into = Into::kScratch;
  };

  static constexpr int kRoundsMax = 16;
  static constexpr int kChainMax = 1024;  // headers of a chain that are followed before the server is asked
  // A table cannot be split more often than its depth has bits, twice; nor, in the time of a few
  // reads, shrink and grow.
  static constexpr int kRedirectsMax = 64;
  // An item of more bytes is not read before the header that names it has verified: what is read in
  // a segment that was given back may look like a slot.
  static constexpr uint64_t kUnverifiedItemBytesMax = 65536;

  // `map` outlives the machine and is taught what the machine learns. `whole_buckets`: read a bucket with all its local
  // items at once (READs dear, bytes cheap), rather than its header alone.
  GetMachine(RegionMap& map, bool whole_buckets) : map_(map), whole_buckets_(whole_buckets) {}

  // Begins a GET. `key` must stay valid until the machine is done.
  Need Start(std::string_view key, uint64_t hash);

  // Begins with a location remembered from earlier: one exact read if the item still lies there, else as Start.
  Need StartAt(std::string_view key, uint64_t hash, Slot slot);

  // Begins with an item whose location and version the server told us: kReplyHeld.
  Need StartHeld(std::string_view key, uint64_t hash, Slot slot, uint64_t version);

  // `bytes`: read().length private bytes, read after the last step.
  Need Resume(std::span<const std::byte> bytes);

  const Read& read() const { return read_; }
  const ItemView& item() const { return item_; }

  // After kFound: where the item lies, to be remembered.
  Slot slot() const { return slot_; }

  // Rounds that settled nothing so far: the driver backs off when this grows.
  int rounds() const { return rounds_; }

  const GetMachineCounters& counters() const { return counters_; }

 private:
  enum class State : uint8_t { kDirectory, kBucketCount, kHeader, kItem, kChain, kConfirm, kRemembered, kHeld };

  void Begin(std::string_view key, uint64_t hash);
  Need Ask(State state, RegionOffset offset, uint64_t length, Into into);
  Need NextRound();
  Need TornHeader();
  Need AskBucketCount();
  bool HeaderVerifies() const;
  Need ReadBucket();
  Need OnDirectory(std::span<const std::byte> bytes);
  Need OnBucketCount(std::span<const std::byte> bytes);
  Need OnHeader(std::span<const std::byte> bytes);
  Need OnItem(std::span<const std::byte> bytes);
  Need OnChain(std::span<const std::byte> bytes);
  Need OnConfirm(std::span<const std::byte> bytes);
  Need OnRemembered(std::span<const std::byte> bytes);
  Need OnHeld(std::span<const std::byte> bytes);
  Need NextCandidate();
  Need AfterCandidates();
  Need Conclude();
  ItemVerdict Judge(std::span<const std::byte> bytes, RegionOffset location, uint64_t held_version = 0);

  RegionMap& map_;
  const bool whole_buckets_;
  State state_ = State::kHeader;
  bool unclear_ = false;     // a candidate was torn, dead or being written: a miss would prove nothing
  bool read_after_ = false;  // something was read after the first header: a miss must be confirmed
  bool in_chain_ = false;    // candidates come from a chained header
  int rounds_ = 0;
  int redirects_ = 0;
  int torn_headers_ = 0;  // in a row
  int chain_ = 0;
  uint32_t shard_ = 0;
  uint32_t candidates_ = 0;  // bit per slot still to be looked at
  BucketIndex bucket_{};
  BucketIndex redirect_{};  // where bucket_'s depth led, while the count is read; bucket_ itself if nothing did
  RegionOffset bucket_offset_{};
  RegionOffset chain_offset_{};
  Slot slot_ = kEmptySlot;
  uint64_t hash_ = 0;
  uint64_t held_version_ = 0;
  uint64_t directory_from_ = 0;
  std::string_view key_;
  std::span<const std::byte> bucket_bytes_;  // header, or whole bucket, as last read
  BucketHeader chain_header_;
  Read read_;
  ItemView item_;
  GetMachineCounters counters_;
};

}  // namespace kvd
