#include "server/store/expiry_hints.h"

#include <algorithm>

namespace kvd {
namespace {

constexpr uint64_t kSecondUs = 1'000'000;

}  // namespace

// What lies beyond the last second that can be said (in 2106) is never due: whoever asks for such
// an item then takes it away.
ExpiryHints::Seconds ExpiryHints::SecondsOf(uint64_t expiry_unix_us) {
  const uint64_t seconds = expiry_unix_us / kSecondUs + (expiry_unix_us % kSecondUs != 0 ? 1 : 0);
  return static_cast<Seconds>(std::min<uint64_t>(seconds, kNever));
}

uint64_t ExpiryHints::DueUnixUs(uint64_t expiry_unix_us) {
  return SecondsOf(expiry_unix_us) * kSecondUs;
}

void ExpiryHints::Reserve(uint32_t buckets) {
  if (buckets <= due_.size()) return;
  const uint64_t groups = (uint64_t{buckets} + kGroup - 1) / kGroup;
  group_.reserve(groups);
  due_.resize(groups * kGroup, kNever);
  group_.resize(groups, kNever);
}

void ExpiryHints::Lower(uint32_t bucket, Seconds due) {
  due_[bucket] = std::min(due_[bucket], due);
  group_[bucket / kGroup] = std::min(group_[bucket / kGroup], due);
}

void ExpiryHints::Note(uint32_t bucket, uint64_t expiry_unix_us) {
  Lower(bucket, SecondsOf(expiry_unix_us));
}

void ExpiryHints::Share(uint32_t bucket, uint32_t from) {
  if (from < due_.size()) Lower(bucket, due_[from]);
}

void ExpiryHints::Correct(uint32_t bucket, uint64_t expiry_unix_us) {
  due_[bucket] = kNever;
  if (expiry_unix_us != 0) Note(bucket, expiry_unix_us);
}

std::optional<uint32_t> ExpiryHints::TakeDue(uint64_t now_unix_us) {
  const uint64_t now = std::min<uint64_t>(now_unix_us / kSecondUs, kNever - 1);
  for (size_t group = 0; group < group_.size(); ++group) {
    if (group_[group] > now) continue;
    const auto begin = due_.begin() + static_cast<ptrdiff_t>(group * kGroup);
    const auto end = begin + kGroup;
    const auto due = std::find_if(begin, end, [now](Seconds hint) { return hint <= now; });
    if (due != end) return static_cast<uint32_t>(due - due_.begin());
    group_[group] = *std::min_element(begin, end);
  }
  return std::nullopt;
}

bool ExpiryHints::Covers(uint32_t bucket, uint64_t expiry_unix_us) const {
  return bucket < due_.size() && due_[bucket] <= SecondsOf(expiry_unix_us) &&
         group_[bucket / kGroup] <= due_[bucket];
}

uint64_t ExpiryHints::NextDueUnixUs() const {
  const auto least = std::min_element(group_.begin(), group_.end());
  if (least == group_.end() || *least == kNever) return UINT64_MAX;
  return *least * kSecondUs;
}

}  // namespace kvd
