// Items whose time has come: taken away when somebody asks for them, and by a sweep when nobody
// does.
#include <algorithm>
#include <optional>
#include <vector>

#include "server/store/shard.h"

namespace kvd {
namespace {

constexpr uint32_t kSweptBucketsPerStep = 8;

// A hint says the second; between two looks at all hints passes at least this.
constexpr uint64_t kBetweenLooksUs = 1'000'000;

}  // namespace

// From here on the key is absent for everybody, whatever the reader's idea of the time.
void Shard::EraseLapsed(BucketChain& chain, SlotPlace place, bool bring_home) {
  expired_items_.Add(1);
  expired_bytes_.Add(ItemBytesOf(chain.SlotAt(place)));
  Erase(chain, place, bring_home);
}

void Shard::NoteExpiry(const BucketChain& chain, uint64_t expiry_unix_us) {
  expiry_.Note(ToNumber(chain.bucket()), expiry_unix_us);
  next_sweep_unix_us_ = std::min(
      next_sweep_unix_us_,
      std::max(ExpiryHints::DueUnixUs(expiry_unix_us), last_look_unix_us_ + kBetweenLooksUs));
}

std::optional<uint64_t> Shard::next_sweep_unix_us() const {
  if (expiring_items_.get() == 0) return std::nullopt;
  return next_sweep_unix_us_;
}

bool Shard::SweepStep() {
  if (expiring_items_.get() == 0 || now_unix_us_ < next_sweep_unix_us_) return false;
  for (uint32_t i = 0; i < kSweptBucketsPerStep; ++i) {
    const std::optional<uint32_t> due = expiry_.TakeDue(now_unix_us_);
    if (!due) {
      last_look_unix_us_ = now_unix_us_;
      next_sweep_unix_us_ = std::max(expiry_.NextDueUnixUs(), last_look_unix_us_ + kBetweenLooksUs);
      return false;
    }
    SweepBucket(ChainAt(BucketIndex{*due}));
  }
  return true;
}

// One at a time: taking a slot away may move another one.
void Shard::SweepBucket(BucketChain chain) {
  uint64_t earliest;
  bool local = false;
  for (bool found = true; found;) {
    earliest = 0;
    std::optional<SlotPlace> lapsed;
    found = chain.AnyOf([&](SlotPlace place, Slot slot) {
      const uint64_t expiry_unix_us = items_.ExtrasOf(slot).expiry_unix_us;
      if (expiry_unix_us == 0) return false;
      if (HasLapsed(expiry_unix_us)) {
        if (!ItemHasLapsed(slot)) return false;
        lapsed = place;
        local = local || LiesIn(chain, slot);
        return true;
      }
      earliest = earliest == 0 ? expiry_unix_us : std::min(earliest, expiry_unix_us);
      return false;
    });
    if (lapsed) EraseLapsed(chain, *lapsed, /*bring_home=*/false);
  }
  expiry_.Correct(ToNumber(chain.bucket()), earliest);
  if (local) BringHome(chain);
}

}  // namespace kvd
