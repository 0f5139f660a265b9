#include "client/internal/window_get.h"

#include <bit>
#include <cstring>
#include <span>

#include "common/layout/bucket.h"
#include "common/protocol/match_tags.h"
#include "common/protocol/racy_copy.h"

#if defined(__x86_64__) && !defined(KVD_TSAN)
#include <immintrin.h>
#define KVD_WINDOW_GET_AVX2 1
#endif

namespace kvd {

// The steps that all instruction sets share. They are inlined into one function per instruction set, so that nothing that
// was compiled for a newer processor can be called on an older one.
struct WindowGetSteps {
  [[gnu::always_inline]] static const BucketHeader* HeaderOf(const WindowGet& get, uint64_t hash) {
    const RegionMap& map = get.map_;
    const uint32_t shard = ShardOf(hash, map.geometry().shard_count);
    const RegionOffset bucket = map.BucketOffset(shard, BucketOf(hash, map.bucket_count(shard)));
    if (ToBytes(bucket) == 0) return nullptr;
    return reinterpret_cast<const BucketHeader*>(get.window_ + ToBytes(bucket));
  }

  // Where the item lies, or null if it is not one that is tried here.
  [[gnu::always_inline]] static const std::byte* ItemAt(const WindowGet& get, Slot slot) {
    if (ItemBytesOf(slot) > WindowGet::kItemBytesMax || !get.map_.Plausible(slot)) return nullptr;
    return get.window_ + ToBytes(LocationOf(slot));
  }

  [[gnu::always_inline]] static bool Judge(const WindowGet& get, std::string_view key, Slot slot, ItemView& item) {
    const ItemExpectation expected{get.map_.geometry().incarnation, LocationOf(slot), key, 0};
    return JudgeItem(std::span<const std::byte>(get.buffer_, ItemBytesOf(slot)), expected, item) ==
           ItemVerdict::kCurrent;
  }

  static std::byte* Buffer(WindowGet& get) { return get.buffer_; }
};

namespace {

using Steps = WindowGetSteps;

bool FindNothing(WindowGet&, std::string_view, uint64_t, ItemView&, Slot&) { return false; }
bool FindNothingAt(WindowGet&, std::string_view, Slot, ItemView&) { return false; }

bool FindAtBaseline(WindowGet& get, std::string_view key, Slot slot, ItemView& item) {
  const std::byte* from = Steps::ItemAt(get, slot);
  if (from == nullptr) return false;
  RacyCopy(Steps::Buffer(get), from, ItemBytesOf(slot));
  return Steps::Judge(get, key, slot, item);
}

bool FindBaseline(WindowGet& get, std::string_view key, uint64_t hash, ItemView& item, Slot& slot) {
  const BucketHeader* header = Steps::HeaderOf(get, hash);
  if (header == nullptr) return false;
  BucketHeader copy;
  RacyCopy(&copy, header, sizeof(copy));
  const uint32_t matches = MatchTags(copy.slots, SlotTag(hash));
  if (matches == 0) return false;
  slot = copy.slots[std::countr_zero(matches)];
  return FindAtBaseline(get, key, slot, item);
}

#if defined(KVD_WINDOW_GET_AVX2)

#define KVD_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]

// Four words at a time, the header's first two included, whose bits are dropped at the end. An empty slot that matches
// tag zero leads to no plausible item.
KVD_AVX2 inline uint32_t MatchTagsAvx2(const BucketHeader* header, uint32_t tag) {
  const __m256i mask = _mm256_set1_epi64x(static_cast<int64_t>(kSlotTagMask));
  const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(uint64_t{tag} << kSlotTagShift));
  const auto* words = reinterpret_cast<const __m256i*>(header);
  uint32_t matches = 0;
  for (int i = 0; i < 4; ++i) {
    const __m256i four = _mm256_and_si256(_mm256_loadu_si256(words + i), mask);
    const __m256i equal = _mm256_cmpeq_epi64(four, wanted);
    matches |= static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal))) << (4 * i);
  }
  return matches >> 2;
}

// 32-byte stores, so that every load of the checksum that follows is served from one of them.
KVD_AVX2 inline void RacyCopyAvx2(std::byte* to, const std::byte* from, uint64_t bytes) {
  uint64_t done = 0;
  for (; done + 32 <= bytes; done += 32) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + done),
                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + done)));
  }
  if ((bytes & 16) != 0) {
    _mm_store_si128(reinterpret_cast<__m128i*>(to + done),
                    _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done)));
    done += 16;
  }
  if ((bytes & 8) != 0) {
    const uint64_t word = RacyLoad64(from + done);
    std::memcpy(to + done, &word, sizeof(word));
  }
  asm volatile("" ::: "memory");  // what was copied is not loaded again
}

KVD_AVX2 bool FindAtAvx2(WindowGet& get, std::string_view key, Slot slot, ItemView& item) {
  const std::byte* from = Steps::ItemAt(get, slot);
  if (from == nullptr) return false;
  RacyCopyAvx2(Steps::Buffer(get), from, ItemBytesOf(slot));
  return Steps::Judge(get, key, slot, item);
}

KVD_AVX2 [[gnu::flatten]] bool FindAvx2(WindowGet& get, std::string_view key, uint64_t hash, ItemView& item,
                                        Slot& slot) {
  const BucketHeader* header = Steps::HeaderOf(get, hash);
  if (header == nullptr) return false;
  const uint32_t matches = MatchTagsAvx2(header, SlotTag(hash));
  if (matches == 0) return false;
  // The slot is loaded again, whole: the comparison only said which one to look at.
  slot = RacyLoad64(&header->slots[std::countr_zero(matches)]);
  return FindAtAvx2(get, key, slot, item);
}

#endif

}  // namespace

WindowGet::WindowGet(const std::byte* window, const RegionMap& map)
    : window_(window), map_(map), find_(FindBaseline), find_at_(FindAtBaseline) {
#if defined(KVD_WINDOW_GET_AVX2)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
    find_ = FindAvx2;
    find_at_ = FindAtAvx2;
  }
#endif
  if (window == nullptr) {
    find_ = FindNothing;
    find_at_ = FindNothingAt;
  }
}

}  // namespace kvd
