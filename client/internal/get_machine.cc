#include "client/internal/get_machine.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/planted_fault.h"
#include "common/layout/checked_word.h"
#include "common/layout/superblock.h"
#include "common/protocol/match_tags.h"

namespace kvd {
namespace {

// Directory entries fetched at once: one page would be 512; neighbours are needed soon, far ones
// perhaps never.
constexpr uint64_t kDirectoryEntriesPerRead = 64;

const BucketHeader& HeaderIn(std::span<const std::byte> bytes) {
  return *reinterpret_cast<const BucketHeader*>(bytes.data());
}

uint64_t WordIn(std::span<const std::byte> bytes, size_t index) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + index * sizeof(word), sizeof(word));
  return word;
}

}  // namespace

GetMachine::Need GetMachine::Ask(State state, RegionOffset offset, uint64_t length, Into into) {
  state_ = state;
  read_ = {offset, length, into};
  return Need::kRead;
}

void GetMachine::Begin(std::string_view key, uint64_t hash) {
  key_ = key;
  hash_ = hash;
  rounds_ = 0;
  redirects_ = 0;
  torn_headers_ = 0;
  shard_ = ShardOf(hash, map_.geometry().shard_count);
  bucket_ = BucketOf(hash, map_.bucket_count(shard_));
}

GetMachine::Need GetMachine::Start(std::string_view key, uint64_t hash) {
  Begin(key, hash);
  return ReadBucket();
}

GetMachine::Need GetMachine::StartAt(std::string_view key, uint64_t hash, Slot slot) {
  if (!map_.Plausible(slot)) return Start(key, hash);
  Begin(key, hash);
  slot_ = slot;
  return Ask(State::kRemembered, LocationOf(slot), ItemBytesOf(slot), Into::kItem);
}

GetMachine::Need GetMachine::StartHeld(std::string_view key, uint64_t hash, Slot slot,
                                       uint64_t version) {
  key_ = key;
  hash_ = hash;
  rounds_ = 0;
  held_version_ = version;
  slot_ = slot;
  if (!map_.Plausible(slot)) return Need::kAskServer;
  return Ask(State::kHeld, LocationOf(slot), ItemBytesOf(slot), Into::kItem);
}

GetMachine::Need GetMachine::Resume(std::span<const std::byte> bytes) {
  switch (state_) {
    case State::kHeader:
      return OnHeader(bytes);
    case State::kItem:
      return OnItem(bytes);
    case State::kChain:
      return OnChain(bytes);
    case State::kConfirm:
      return OnConfirm(bytes);
    case State::kDirectory:
      return OnDirectory(bytes);
    case State::kBucketCount:
      return OnBucketCount(bytes);
    case State::kRemembered:
      return OnRemembered(bytes);
    case State::kHeld:
      return OnHeld(bytes);
  }
  return Need::kAskServer;
}

GetMachine::Need GetMachine::NextRound() {
  if (++rounds_ > kRoundsMax) return Need::kAskServer;
  bucket_ = BucketOf(hash_, map_.bucket_count(shard_));
  return ReadBucket();
}

// The bucket's own header does not verify. It is being changed; or nothing of that bucket lies
// there any more.
GetMachine::Need GetMachine::TornHeader() {
  ++counters_.torn_reads;
  if (++torn_headers_ < 2) return NextRound();
  torn_headers_ = 0;
  if (++rounds_ > kRoundsMax) return Need::kAskServer;
  map_.ForgetSegment(map_.geometry().DirectoryIndex(shard_, bucket_));
  redirect_ = bucket_;
  return AskBucketCount();
}

GetMachine::Need GetMachine::AskBucketCount() {
  return Ask(State::kBucketCount, kBucketCountsOffset + shard_ * sizeof(uint64_t), sizeof(uint64_t),
             Into::kScratch);
}

GetMachine::Need GetMachine::ReadBucket() {
  unclear_ = false;
  read_after_ = false;
  in_chain_ = false;
  chain_ = 0;
  const Geometry& geometry = map_.geometry();
  bucket_offset_ = map_.BucketOffset(shard_, bucket_);
  if (ToBytes(bucket_offset_) != 0) {
    return Ask(State::kHeader, bucket_offset_,
               whole_buckets_ ? geometry.bucket_bytes : kBucketHeaderBytes, Into::kBucket);
  }
  const uint64_t index = geometry.DirectoryIndex(shard_, bucket_);
  if (index >= geometry.directory_entries) return Need::kAskServer;
  directory_from_ = index - index % kDirectoryEntriesPerRead;
  const uint64_t entries =
      std::min(kDirectoryEntriesPerRead, geometry.directory_entries - directory_from_);
  return Ask(State::kDirectory,
             RegionOffset{geometry.directory_offset + directory_from_ * sizeof(uint64_t)},
             entries * sizeof(uint64_t), Into::kScratch);
}

GetMachine::Need GetMachine::OnDirectory(std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size() / sizeof(uint64_t); ++i) {
    const uint64_t index = directory_from_ + i;
    const auto segment = UnpackCheckedWord(CheckedWordKind::kDirectoryEntry, index,
                                           map_.geometry().incarnation, WordIn(bytes, i));
    if (segment.has_value()) {
      map_.LearnSegment(index, *segment);
    } else if (WordIn(bytes, i) == 0) {
      map_.ForgetSegment(index);  // it was given back
    }
  }
  if (ToBytes(map_.BucketOffset(shard_, bucket_)) != 0) return ReadBucket();
  // A torn entry, or none any more, of a bucket that is gone: the count says whether it is.
  ++counters_.torn_reads;
  if (++rounds_ > kRoundsMax) return Need::kAskServer;
  redirect_ = bucket_;
  return AskBucketCount();
}

// One read of the count word makes one redirect enough for many splits or merges. It may be behind
// a split of which a depth has told, as it is published last; it is never behind a merge, where it
// is published before.
GetMachine::Need GetMachine::OnBucketCount(std::span<const std::byte> bytes) {
  const auto count = UnpackCheckedWord(CheckedWordKind::kBucketCount, shard_,
                                       map_.geometry().incarnation, WordIn(bytes, 0));
  const bool led_up = ToNumber(redirect_) > ToNumber(bucket_);
  if (!count.has_value()) ++counters_.torn_reads;
  if (!count.has_value() && !led_up)
    return ++rounds_ > kRoundsMax ? Need::kAskServer : AskBucketCount();
  map_.LearnBucketCount(shard_, std::max(count.value_or(1), led_up ? ToNumber(redirect_) + 1 : 1));
  bucket_ = BucketOf(hash_, map_.bucket_count(shard_));
  return ReadBucket();
}

ItemVerdict GetMachine::Judge(std::span<const std::byte> bytes, RegionOffset location,
                              uint64_t held_version) {
  const ItemExpectation expected{map_.geometry().incarnation, location, key_, held_version,
                                 map_.server_clock()};
  const ItemVerdict verdict = JudgeItem(bytes, expected, item_);
  switch (verdict) {
    case ItemVerdict::kCurrent:
    case ItemVerdict::kOtherKey:
      break;
    case ItemVerdict::kExpired:
      ++counters_.expired;
      break;
    case ItemVerdict::kTorn:
      ++counters_.torn_reads;
      unclear_ = true;
      break;
    case ItemVerdict::kDead:
    case ItemVerdict::kWriting:
      ++counters_.moved_items;
      unclear_ = true;
      break;
  }
  return verdict;
}

GetMachine::Need GetMachine::OnHeader(std::span<const std::byte> bytes) {
  bucket_bytes_ = bytes;
  candidates_ = MatchTags(HeaderIn(bytes).slots, SlotTag(hash_));
  return NextCandidate();
}

GetMachine::Need GetMachine::NextCandidate() {
  const Slot(&slots)[kSlotsPerHeader] =
      in_chain_ ? chain_header_.slots : HeaderIn(bucket_bytes_).slots;
  while (candidates_ != 0) {
    slot_ = slots[std::countr_zero(candidates_)];
    candidates_ &= candidates_ - 1;
    const RegionOffset location = LocationOf(slot_);
    const uint64_t item_bytes = ItemBytesOf(slot_);
    if (!map_.Plausible(slot_)) {
      ++counters_.torn_reads;
      unclear_ = true;
      continue;
    }
    if (item_bytes > kUnverifiedItemBytesMax && !in_chain_ && !HeaderVerifies())
      return TornHeader();
    read_after_ = true;
    const uint64_t in_bucket =
        ToBytes(location) - ToBytes(bucket_offset_);  // wraps to huge below the bucket
    if (in_bucket < bucket_bytes_.size() && item_bytes <= bucket_bytes_.size() - in_bucket) {
      const ItemVerdict verdict = Judge(bucket_bytes_.subspan(in_bucket, item_bytes), location);
      if (verdict == ItemVerdict::kCurrent) return Need::kFound;
      if (verdict == ItemVerdict::kExpired) return Need::kAbsent;
      continue;
    }
    return Ask(State::kItem, location, item_bytes, Into::kItem);
  }
  return AfterCandidates();
}

GetMachine::Need GetMachine::OnItem(std::span<const std::byte> bytes) {
  const ItemVerdict verdict = Judge(bytes, LocationOf(slot_));
  if (verdict == ItemVerdict::kCurrent) return Need::kFound;
  // The key's current item: no confirmation makes it clearer that there is nothing to be returned.
  if (verdict == ItemVerdict::kExpired) return Need::kAbsent;
  return NextCandidate();
}

bool GetMachine::HeaderVerifies() const {
  const BucketHeader& first = HeaderIn(bucket_bytes_);
  return HeaderChecksum(first, HeaderSeed(map_.geometry().incarnation, shard_, bucket_,
                                          RegionOffset{0})) == first.checksum;
}

// No slot so far led to the key. Before that means anything, the header has to be whole and the
// right one.
GetMachine::Need GetMachine::AfterCandidates() {
  const Geometry& geometry = map_.geometry();
  const BucketHeader& first = HeaderIn(bucket_bytes_);
  if (!in_chain_) {
    if (!HeaderVerifies()) return TornHeader();
    torn_headers_ = 0;
    redirect_ = FollowDepth(hash_, bucket_, DepthOf(first.link));
    if (redirect_ != bucket_) {
      if (++redirects_ > kRedirectsMax) return Need::kAskServer;
      // Where nothing is known of the table's size yet, nothing has changed either.
      if (map_.bucket_count(shard_) > 1) ++counters_.redirects;
      if (ToNumber(redirect_) < ToNumber(bucket_)) {
        map_.ForgetSegment(geometry.DirectoryIndex(shard_, bucket_));
      } else if (geometry.DirectoryIndex(shard_, redirect_) >= geometry.directory_entries) {
        return Need::kAskServer;  // a number that cannot be
      }
      return AskBucketCount();
    }
  }
  const RegionOffset next =
      in_chain_ ? OverflowOf(chain_header_.link) : ChainFor(first.link, SlotTag(hash_));
  if (ToBytes(next) == 0) return Conclude();
  if (++chain_ > kChainMax) return Need::kAskServer;
  if (!geometry.Contains(next, kBucketHeaderBytes)) {
    ++counters_.torn_reads;
    return NextRound();
  }
  chain_offset_ = next;
  return Ask(State::kChain, next, kBucketHeaderBytes, Into::kScratch);
}

GetMachine::Need GetMachine::OnChain(std::span<const std::byte> bytes) {
  std::memcpy(&chain_header_, bytes.data(), sizeof(chain_header_));
  const uint64_t seed = HeaderSeed(map_.geometry().incarnation, shard_, bucket_, chain_offset_);
  if (HeaderChecksum(chain_header_, seed) != chain_header_.checksum) {
    ++counters_.torn_reads;
    return NextRound();
  }
  in_chain_ = true;
  // Of the version that the bucket's own header had: it belongs to the same state of the chain.
  if (chain_header_.version != HeaderIn(bucket_bytes_).version) read_after_ = true;
  candidates_ = MatchTags(chain_header_.slots, SlotTag(hash_));
  return NextCandidate();
}

GetMachine::Need GetMachine::Conclude() {
  if (unclear_) return NextRound();
  if (!read_after_ || Planted("no confirmation")) return Need::kAbsent;
  ++counters_.confirmations;
  return Ask(State::kConfirm, bucket_offset_, kBucketHeaderBytes, Into::kScratch);
}

GetMachine::Need GetMachine::OnConfirm(std::span<const std::byte> bytes) {
  if (std::memcmp(bytes.data(), bucket_bytes_.data(), kBucketHeaderBytes) == 0)
    return Need::kAbsent;
  return NextRound();
}

GetMachine::Need GetMachine::OnRemembered(std::span<const std::byte> bytes) {
  const ItemVerdict verdict = Judge(bytes, LocationOf(slot_));
  if (verdict == ItemVerdict::kCurrent) return Need::kFound;
  if (verdict == ItemVerdict::kExpired) return Need::kAbsent;
  ++counters_.stale_locations;
  return ReadBucket();
}

GetMachine::Need GetMachine::OnHeld(std::span<const std::byte> bytes) {
  const ItemVerdict verdict = Judge(bytes, LocationOf(slot_), held_version_);
  if (verdict == ItemVerdict::kCurrent) return Need::kFound;
  if (verdict == ItemVerdict::kExpired) return Need::kAbsent;
  return Need::kAskServer;
}

}  // namespace kvd
