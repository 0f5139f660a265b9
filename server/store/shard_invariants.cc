// Shard::CheckInvariants: the whole store, looked at from the region's bytes and from the private
// bookkeeping.
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "server/store/shard.h"

namespace kvd {

class Shard::InvariantChecker {
 public:
  explicit InvariantChecker(const Shard& shard) : shard_(shard) {}

  absl::Status Run() {
    for (uint32_t bucket = 0; bucket < shard_.table_.count(); ++bucket) {
      KVD_RETURN_IF_ERROR(CheckBucket(shard_.ChainAt(BucketIndex{bucket})));
    }
    KVD_RETURN_IF_ERROR(CheckBeyondCount());
    KVD_RETURN_IF_ERROR(CheckCounters());
    for (const auto& [location, bytes] : shard_.reserved_) {
      KVD_RETURN_IF_ERROR(Claim(RegionOffset{location}, bytes, "reservation"));
    }
    absl::Status status;
    shard_.held_.ForEachLeft(RegionOffset{0}, RegionOffset{UINT64_MAX}, [&](Slot slot) {
      if (shard_.heap_.Contains(LocationOf(slot))) {
        status.Update(Claim(LocationOf(slot), ItemBytesOf(slot), "held item"));
      }
    });
    KVD_RETURN_IF_ERROR(status);
    KVD_RETURN_IF_ERROR(shard_.heap_.CheckInvariants());
    KVD_RETURN_IF_ERROR(CheckHeapIsClaimed());
    return CheckRegion();
  }

 private:
  template <typename... Parts>
  static absl::Status Wrong(const Parts&... parts) {
    return absl::InternalError(absl::StrCat("store: ", parts...));
  }

  absl::Status CheckBucket(const BucketChain& chain) {
    const uint32_t number = ToNumber(chain.bucket());
    const uint32_t count = shard_.table_.count();
    const uint32_t low_depth = static_cast<uint32_t>(std::bit_width(count)) - 1;
    const uint32_t split = count - (1u << low_depth);
    const uint32_t depth =
        number < split || number >= (1u << low_depth) ? low_depth + 1 : low_depth;
    if (chain.depth() != depth)
      return Wrong("bucket ", number, " has depth ", chain.depth(), " instead of ", depth);
    if (!chain.Verifies(chain.place())) return Wrong("bucket ", number, " does not verify");

    absl::Status status;
    chain.ForEachOverflow([&](RegionOffset header) {
      ++overflow_headers_;
      if (!chain.Verifies(header))
        status.Update(Wrong("overflow header ", ToBytes(header), " does not verify"));
      status.Update(ClaimOfHeap(header, kBucketHeaderBytes, chain.bucket(), "overflow header"));
    });
    std::set<std::string_view> keys;
    LocalSpace space(chain.place(), shard_.region_.geometry().bucket_bytes);
    std::map<uint64_t, uint32_t> slots_of_header;
    uint64_t filter = 0;
    chain.AnyOf([&](SlotPlace place, Slot slot) {
      ++slots_of_header[ToBytes(place.header)];
      if (place.header != chain.place()) filter |= ChainFilterBit(TagOf(slot));
      status.Update(CheckItem(chain, slot, space));
      if (status.ok() && !keys.insert(shard_.items_.KeyAt(LocationOf(slot))).second) {
        status.Update(Wrong("bucket ", number, " has a key twice"));
      }
      return !status.ok();
    });
    KVD_RETURN_IF_ERROR(status);
    shard_.guests_.ForEachIn(
        chain.place(), chain.place() + shard_.region_.geometry().bucket_bytes,
        [&](const Guests::Guest& guest) {
          if (!space.Contains(guest.at) || space.Overlaps(guest.at, guest.bytes)) {
            status.Update(Wrong("guest at ", ToBytes(guest.at), " in bucket ", number,
                                " overlaps something"));
          }
          space.MarkUsed(guest.at, guest.bytes);
        });
    KVD_RETURN_IF_ERROR(status);
    if (chain.filter() != filter) {
      return Wrong("bucket ", number, " has filter ", chain.filter(), " instead of ", filter);
    }
    return CheckChainIsFilled(chain, slots_of_header);
  }

  // What a reader with an old count comes to sends him back.
  absl::Status CheckBeyondCount() const {
    for (uint32_t number = shard_.table_.count(); number < shard_.table_.placed(); ++number) {
      const BucketChain chain = shard_.ChainAt(BucketIndex{number});
      if (!chain.Verifies(chain.place()) || chain.depth() != MergedDepth(chain.bucket()) ||
          chain.AnyOf([](SlotPlace, Slot) { return true; })) {
        return Wrong("bucket ", number, " is not there, but its header does not say so");
      }
    }
    return absl::OkStatus();
  }

  // Only the front of the chain may have holes, and the bucket's own header only if there is no
  // chain.
  absl::Status CheckChainIsFilled(const BucketChain& chain,
                                  std::map<uint64_t, uint32_t>& slots_of_header) {
    absl::Status status;
    bool front = true;
    chain.ForEachOverflow([&](RegionOffset header) {
      const uint32_t used = slots_of_header[ToBytes(header)];
      if (used == 0 || (!front && used != kSlotsPerHeader)) {
        status.Update(Wrong("overflow header ", ToBytes(header), " has ", used, " slots in use"));
      }
      front = false;
    });
    if (!front && slots_of_header[ToBytes(chain.place())] != kSlotsPerHeader) {
      status.Update(Wrong("bucket ", ToNumber(chain.bucket()), " has a chain and empty slots"));
    }
    return status;
  }

  absl::Status CheckItem(const BucketChain& chain, Slot slot, LocalSpace& space) {
    const RegionOffset at = LocationOf(slot);
    const Geometry& geometry = shard_.region_.geometry();
    if (!geometry.Contains(at, ItemBytesOf(slot)))
      return Wrong("item at ", ToBytes(at), " is outside of the region");
    ItemView item;
    const ItemVerdict verdict = JudgeItem(
        std::span<const std::byte>(shard_.region_.At(at), ItemBytesOf(slot)),
        {.incarnation = geometry.incarnation, .location = at, .key = {}, .held_version = 0}, item);
    if (verdict != ItemVerdict::kCurrent) {
      return Wrong("item at ", ToBytes(at), " is judged ", static_cast<int>(verdict));
    }
    const uint64_t hash = HashKey(item.key, geometry.hash_seed());
    const ItemShape shape{item.key.size(), item.value.size(),
                          ItemExtras{item.expiry_unix_us, item.user_flags}.flags()};
    if (BucketOf(hash, shard_.table_.count()) != chain.bucket() || TagOf(slot) != SlotTag(hash) ||
        ShardOf(hash, geometry.shard_count) != shard_.shard_ ||
        ItemBytesOf(slot) != shape.occupied_bytes() || item.version > shard_.last_version_) {
      return Wrong("item at ", ToBytes(at), " does not fit its slot in bucket ",
                   ToNumber(chain.bucket()));
    }
    ++items_;
    user_bytes_ += item.key.size() + item.value.size();
    if (item.expiry_unix_us != 0) {
      ++expiring_items_;
      if (!shard_.expiry_.Covers(ToNumber(chain.bucket()), item.expiry_unix_us)) {
        return Wrong("the sweep will not meet the item at ", ToBytes(at));
      }
    }
    if (shape.occupied_bytes() <= shard_.local_item_bytes_max_)
      wanted_local_bytes_ += shape.occupied_bytes();
    if (!space.Contains(at)) return ClaimOfHeap(at, ItemBytesOf(slot), std::nullopt, "item");
    ++local_items_;
    if (space.Overlaps(at, ItemBytesOf(slot)))
      return Wrong("local item at ", ToBytes(at), " overlaps another");
    space.MarkUsed(at, ItemBytesOf(slot));
    return absl::OkStatus();
  }

  // What does not lie in its own bucket is in the heap, or a guest.
  absl::Status ClaimOfHeap(RegionOffset at, uint64_t bytes, std::optional<BucketIndex> header_of,
                           std::string_view what) {
    const std::optional<Guests::Guest> guest = shard_.guests_.NextFrom(at);
    if (!guest || guest->at != at) return Claim(at, bytes, what);
    ++guests_;
    if (guest->bytes != bytes || guest->owner.header_of != header_of) {
      return Wrong(std::string(what), " at ", ToBytes(at), " is a guest of other bytes or owner");
    }
    return absl::OkStatus();
  }

  // Somebody owns [at, at + bytes) of the heap.
  absl::Status Claim(RegionOffset at, uint64_t bytes, std::string_view what) {
    used_bytes_ += bytes;
    if (!claimed_.emplace(ToBytes(at), bytes).second) {
      return Wrong(std::string(what), " at ", ToBytes(at), ": the place is owned twice");
    }
    return absl::OkStatus();
  }

  absl::Status CheckHeapIsClaimed() {
    absl::Status status;
    size_t objects = 0;
    shard_.heap_.ForEachObject([&](RegionOffset at, uint64_t bytes) {
      ++objects;
      const auto found = claimed_.find(ToBytes(at));
      if (found == claimed_.end()) {
        status.Update(Wrong("heap object at ", ToBytes(at), " belongs to nobody"));
      } else if (found->second > bytes) {
        status.Update(Wrong("heap object at ", ToBytes(at), " of ", bytes, " bytes is used for ",
                            found->second));
      }
    });
    if (status.ok() && objects != claimed_.size()) {
      return Wrong(claimed_.size(), " objects in use, ", objects, " in the heap");
    }
    if (status.ok() && used_bytes_ != shard_.heap_.used_bytes()) {
      return Wrong(used_bytes_, " bytes in use, ", shard_.heap_.used_bytes(),
                   " counted by the heap");
    }
    return status;
  }

  absl::Status CheckCounters() const {
    if (guests_ != shard_.guests_.count() || guests_ != shard_.borrowed_places_.get()) {
      return Wrong(guests_, " guests met, ", shard_.guests_.count(), " known, ",
                   shard_.borrowed_places_.get(), " counted");
    }
    if (items_ != shard_.item_count_.get() || user_bytes_ != shard_.user_bytes_.get() ||
        local_items_ != shard_.local_items_.get() ||
        expiring_items_ != shard_.expiring_items_.get() ||
        overflow_headers_ != shard_.overflow_headers_.get() ||
        wanted_local_bytes_ != shard_.wanted_local_bytes_.get()) {
      return Wrong("counted ", items_, " items, ", local_items_, " local, ", user_bytes_,
                   " user bytes, ", expiring_items_, " expiring, ", overflow_headers_,
                   " overflow headers, ", wanted_local_bytes_,
                   " bytes wanted in buckets; the counters say ", shard_.item_count_.get(), ", ",
                   shard_.local_items_.get(), ", ", shard_.user_bytes_.get(), ", ",
                   shard_.expiring_items_.get(), ", ", shard_.overflow_headers_.get(), ", ",
                   shard_.wanted_local_bytes_.get());
    }
    return absl::OkStatus();
  }

  // With one shard every byte of the region belongs to the fixed part, the index, the heap, or
  // nobody.
  absl::Status CheckRegion() const {
    const Geometry& geometry = shard_.region_.geometry();
    KVD_RETURN_IF_ERROR(shard_.region_.pages().CheckInvariants());
    if (geometry.shard_count != 1) return absl::OkStatus();
    const uint64_t fixed =
        geometry.directory_offset + uint64_t{geometry.directory_entries} * sizeof(uint64_t);
    const uint64_t known = (fixed + kPageBytes - 1) / kPageBytes * kPageBytes +
                           shard_.table_.index_bytes() + shard_.heap_.held_bytes() +
                           shard_.region_.free_bytes();
    if (known != geometry.region_bytes / kPageBytes * kPageBytes) {
      return Wrong(known, " bytes accounted for in a region of ", geometry.region_bytes);
    }
    return absl::OkStatus();
  }

  const Shard& shard_;
  uint64_t items_ = 0, user_bytes_ = 0, local_items_ = 0, expiring_items_ = 0,
           overflow_headers_ = 0, wanted_local_bytes_ = 0;
  uint64_t guests_ = 0;
  uint64_t used_bytes_ = 0;
  std::map<uint64_t, uint64_t> claimed_;  // location -> bytes in use there
};

absl::Status Shard::CheckInvariants() const { return InvariantChecker(*this).Run(); }

}  // namespace kvd
