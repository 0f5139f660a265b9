// Writes that build on the value that is there: INCREMENT, APPEND and PREPEND, TOUCH.
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "server/store/shard.h"

namespace kvd {
namespace {

// A signed 64-bit number as text.
class Decimal {
 public:
  explicit Decimal(int64_t number) {
    length_ =
        static_cast<size_t>(std::to_chars(digits_, digits_ + kDigitsMax, number).ptr - digits_);
  }
  std::string_view text() const { return {digits_, length_}; }

  // The number that `text` is, if it is exactly as it would be written here.
  static std::optional<int64_t> Parse(std::string_view text) {
    int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || Decimal(number).text() != text) return std::nullopt;
    return number;
  }

 private:
  static constexpr size_t kDigitsMax = 20;  // of INT64_MIN, with its sign
  char digits_[kDigitsMax];
  size_t length_;
};

// The extras of an item that is written anew.
ItemExtras Renewed(ItemExtras extras, const StoreOptions& options) {
  if (options.extras.expiry_unix_us != 0) extras.expiry_unix_us = options.extras.expiry_unix_us;
  return extras;
}

}  // namespace

StoreResult Shard::Increment(std::string_view key, uint64_t hash, int64_t delta,
                             const StoreOptions& options) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target = Locate(key, hash);
  if (const StoreResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
    return judged;
  }
  int64_t number = 0;
  ItemExtras extras = options.extras;
  if (target.place) {
    const Slot slot = target.chain.SlotAt(*target.place);
    if (!MayBuildOn(slot)) return {.status = StoreStatus::kDamaged};
    const RegionOffset at = LocationOf(slot);
    const std::optional<int64_t> before = Decimal::Parse(items_.Read(at).value);
    if (!before) return {.status = StoreStatus::kNotNumber};
    number = *before;
    extras = Renewed(items_.ExtrasAt(at), options);
  }
  if (__builtin_add_overflow(number, delta, &number)) return {.status = StoreStatus::kOverflow};
  const Decimal after(number);
  StoreResult result =
      Store(target, hash, {.key = key, .value = after.text(), .value_end = {}, .extras = extras});
  result.number = number;
  return result;
}

// Out of place always: a reader of the old value goes on undisturbed, and the new one is put
// together from it.
StoreResult Shard::Extend(std::string_view key, uint64_t hash, End end, std::string_view piece,
                          uint64_t value_bytes_max, const StoreOptions& options) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target = Locate(key, hash);
  if (const StoreResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
    return judged;
  }
  ItemContent content{.key = key, .value = piece, .value_end = {}, .extras = options.extras};
  if (target.place) {
    const Slot slot = target.chain.SlotAt(*target.place);
    if (!MayBuildOn(slot)) return {.status = StoreStatus::kDamaged};
    const ItemView item = items_.Read(LocationOf(slot));
    content.extras = Renewed({item.expiry_unix_us, item.user_flags}, options);
    content.value = end == End::kBack ? item.value : piece;
    content.value_end = end == End::kBack ? piece : item.value;
  }
  if (content.value.size() + content.value_end.size() > value_bytes_max) {
    return {.status = StoreStatus::kTooLarge};
  }
  return StoreElsewhere(target, hash, content);
}

// In place at any size, if only the expiry changes: a reader waits for the time that the checksum
// takes, which is less than a copy of the item would cost the others.
StoreResult Shard::Touch(std::string_view key, uint64_t hash, const StoreOptions& options) {
  Target target = Locate(key, hash);
  if (!target.place) return {.status = StoreStatus::kNotFound};
  if (const StoreResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
    return judged;
  }
  const uint64_t expiry_unix_us = options.extras.expiry_unix_us;
  if (HasLapsed(expiry_unix_us)) return StoreLapsed(target, expiry_unix_us);
  const Slot slot = target.chain.SlotAt(*target.place);
  if (!MayBuildOn(slot)) return {.status = StoreStatus::kDamaged};
  const ItemView item = items_.Read(LocationOf(slot));
  const ItemExtras extras{expiry_unix_us, item.user_flags};
  const bool same_words = (item.expiry_unix_us != 0) == (expiry_unix_us != 0);
  if (!same_words || (!held_.empty() && held_.Contains(LocationOf(slot)))) {
    return StoreElsewhere(target, hash,
                          {.key = key, .value = item.value, .value_end = {}, .extras = extras});
  }
  const uint64_t version = NextVersion();
  items_.OverwriteExtras(LocationOf(slot), version, extras);
  if (expiry_unix_us != 0) NoteExpiry(target.chain, expiry_unix_us);
  Use(target.chain, slot);
  return {.version = version, .slot = slot, .expiry_unix_us = expiry_unix_us};
}

}  // namespace kvd
