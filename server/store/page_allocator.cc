#include "server/store/page_allocator.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace kvd {
namespace {

constexpr uint64_t RoundUp(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool HoldsSegment(uint64_t begin, uint64_t bytes) {
  return RoundUp(begin, kSegmentBytes) + kSegmentBytes <= begin + bytes;
}

}  // namespace

PageAllocator::PageAllocator(RegionOffset begin, RegionOffset end, uint32_t zones)
    : begin_(ToBytes(begin)), end_(ToBytes(end)), zones_(zones) {
  KVD_CHECK(begin_ % kPageBytes == 0 && end_ % kPageBytes == 0 && begin_ < end_ && zones > 0);
  for (uint32_t i = 0; i < zones; ++i) {
    zones_[i].begin = i == 0 ? begin_ : zones_[i - 1].end;
    const uint64_t border = RoundUp(begin_ + (end_ - begin_) / zones * (i + 1), kSegmentBytes);
    zones_[i].end = i + 1 == zones ? end_ : std::min(border, end_);
  }
  Insert({begin_, end_ - begin_});
}

template <typename Visit>
void PageAllocator::ForEachPiece(Run run, Visit visit) {
  const auto [begin, bytes] = run;
  for (Zone& zone : zones_) {
    const uint64_t from = std::max(begin, zone.begin);
    const uint64_t to = std::min(begin + bytes, zone.end);
    if (from < to) visit(zone, Run{from, to - from});
  }
}

void PageAllocator::Insert(Run run) {
  const auto [begin, bytes] = run;
  if (bytes == 0) return;
  by_begin_.emplace(begin, bytes);
  by_bytes_.emplace(bytes, uint64_t{0} - begin);
  ForEachPiece(run, [](Zone& zone, Run piece) {
    zone.by_bytes.emplace(piece.second, uint64_t{0} - piece.first);
    if (HoldsSegment(piece.first, piece.second)) zone.with_segment.insert(piece.first);
  });
  free_bytes_.store(free_bytes() + bytes, std::memory_order_relaxed);
}

void PageAllocator::Erase(Run run) {
  const auto [begin, bytes] = run;
  by_begin_.erase(begin);
  by_bytes_.erase({bytes, uint64_t{0} - begin});
  ForEachPiece(run, [](Zone& zone, Run piece) {
    zone.by_bytes.erase({piece.second, uint64_t{0} - piece.first});
    zone.with_segment.erase(piece.first);
  });
  free_bytes_.store(free_bytes() - bytes, std::memory_order_relaxed);
}

void PageAllocator::Take(uint64_t begin, uint64_t bytes) {
  const Run run = *std::prev(by_begin_.upper_bound(begin));
  const uint64_t end = begin + bytes;
  Erase(run);
  Insert({run.first, begin - run.first});
  Insert({end, run.first + run.second - end});
}

std::optional<RegionOffset> PageAllocator::AllocateFrom(const RunsByBytes& runs, uint64_t bytes) {
  const auto found = runs.lower_bound({bytes, 0});
  if (found == runs.end()) return std::nullopt;
  const uint64_t at = uint64_t{0} - found->second + found->first - bytes;
  Take(at, bytes);
  return RegionOffset{at};
}

std::optional<RegionOffset> PageAllocator::Allocate(uint64_t bytes, From from) {
  if (bytes == 0 || bytes > end_ - begin_) return std::nullopt;
  bytes = RoundUp(bytes, kPageBytes);
  const std::lock_guard lock(mutex_);
  const std::optional<RegionOffset> at = AllocateFrom(zones_[from.zone].by_bytes, bytes);
  return at || from.only ? at : AllocateFrom(by_bytes_, bytes);
}

std::optional<RegionOffset> PageAllocator::AllocateSegmentFrom(const Zone& zone) {
  if (zone.with_segment.empty()) return std::nullopt;
  const uint64_t at = RoundUp(*zone.with_segment.begin(), kSegmentBytes);
  Take(at, kSegmentBytes);
  return RegionOffset{at};
}

std::optional<RegionOffset> PageAllocator::AllocateSegment(From from) {
  const std::lock_guard lock(mutex_);
  std::optional<RegionOffset> at = AllocateSegmentFrom(zones_[from.zone]);
  for (size_t i = 0; i < zones_.size() && !at && !from.only; ++i)
    at = AllocateSegmentFrom(zones_[i]);
  return at;
}

std::optional<RegionOffset> PageAllocator::AllocateSegmentOutside(RegionOffset begin,
                                                                  RegionOffset end, uint32_t zone) {
  const std::lock_guard lock(mutex_);
  for (const uint64_t piece : zones_[zone].with_segment) {
    const Run run = *std::prev(by_begin_.upper_bound(piece));
    const uint64_t piece_end = std::min(run.first + run.second, zones_[zone].end);
    uint64_t at = RoundUp(piece, kSegmentBytes);
    if (at < ToBytes(end) && at + kSegmentBytes > ToBytes(begin)) {
      at = RoundUp(ToBytes(end), kSegmentBytes);
    }
    if (at + kSegmentBytes > piece_end) continue;
    Take(at, kSegmentBytes);
    return RegionOffset{at};
  }
  return std::nullopt;
}

void PageAllocator::Free(RegionOffset offset, uint64_t bytes) {
  uint64_t begin = ToBytes(offset);
  uint64_t end = begin + RoundUp(bytes, kPageBytes);
  KVD_CHECK(begin % kPageBytes == 0 && begin >= begin_ && begin < end && end <= end_);
  const std::lock_guard lock(mutex_);
  const auto above = by_begin_.lower_bound(begin);
  KVD_CHECK(above == by_begin_.end() || above->first >= end);
  Run next{0, 0};
  if (above != by_begin_.end() && above->first == end) next = *above;
  Run previous{0, 0};
  if (above != by_begin_.begin()) {
    const Run below = *std::prev(above);
    KVD_CHECK(below.first + below.second <= begin);
    if (below.first + below.second == begin) previous = below;
  }
  if (next.second != 0) {
    Erase(next);
    end = next.first + next.second;
  }
  if (previous.second != 0) {
    Erase(previous);
    begin = previous.first;
  }
  Insert({begin, end - begin});
}

uint64_t PageAllocator::longest_free_run_bytes() const {
  const std::lock_guard lock(mutex_);
  return by_bytes_.empty() ? 0 : by_bytes_.rbegin()->first;
}

uint64_t PageAllocator::FreeBytesFrom(RegionOffset at) const {
  const std::lock_guard lock(mutex_);
  const auto after = by_begin_.upper_bound(ToBytes(at));
  if (after == by_begin_.begin()) return 0;
  const auto& [begin, bytes] = *std::prev(after);
  return ToBytes(at) < begin + bytes ? begin + bytes - ToBytes(at) : 0;
}

uint64_t PageAllocator::FreeBytesBefore(RegionOffset at) const {
  const std::lock_guard lock(mutex_);
  const auto not_before = by_begin_.lower_bound(ToBytes(at));
  if (not_before == by_begin_.begin()) return 0;
  const auto& [begin, bytes] = *std::prev(not_before);
  return ToBytes(at) <= begin + bytes ? ToBytes(at) - begin : 0;
}

absl::Status PageAllocator::CheckInvariants() const {
  const std::lock_guard lock(mutex_);
  uint64_t free = 0;
  uint64_t last_end = 0;
  size_t pieces = 0;
  size_t segments = 0;
  for (const auto& [begin, bytes] : by_begin_) {
    if (begin < begin_ || begin + bytes > end_ || bytes == 0 || begin % kPageBytes != 0 ||
        bytes % kPageBytes != 0) {
      return absl::InternalError(
          absl::StrCat("free run of ", bytes, " bytes at ", begin, " is not in the region"));
    }
    if (last_end != 0 && begin <= last_end) {
      return absl::InternalError(
          absl::StrCat("free run at ", begin, " touches the one that ends at ", last_end));
    }
    if (by_bytes_.count({bytes, uint64_t{0} - begin}) == 0) {
      return absl::InternalError(absl::StrCat("free run at ", begin, " is not ordered by size"));
    }
    bool in_zones = true;
    for (const Zone& zone : zones_) {
      const uint64_t from = std::max(begin, zone.begin);
      const uint64_t to = std::min(begin + bytes, zone.end);
      if (from >= to) continue;
      ++pieces;
      in_zones = in_zones && zone.by_bytes.count({to - from, uint64_t{0} - from}) != 0;
      if (!HoldsSegment(from, to - from)) continue;
      ++segments;
      in_zones = in_zones && zone.with_segment.count(from) != 0;
    }
    if (!in_zones) {
      return absl::InternalError(absl::StrCat("free run at ", begin, " is not in its zones"));
    }
    last_end = begin + bytes;
    free += bytes;
  }
  for (const Zone& zone : zones_) {
    pieces -= zone.by_bytes.size();
    segments -= zone.with_segment.size();
  }
  if (by_bytes_.size() != by_begin_.size() || pieces != 0 || segments != 0 ||
      free != free_bytes()) {
    return absl::InternalError(absl::StrCat("free runs: ", by_begin_.size(), " by address, ",
                                            by_bytes_.size(), " by size; ", free, " bytes, ",
                                            free_bytes(), " counted"));
  }
  return absl::OkStatus();
}

}  // namespace kvd
