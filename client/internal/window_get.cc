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
  static constexpr uint64_t kCopyBytes = 32;
  static constexpr uint64_t kUnitsMin = kItemBytesMin / kLocationUnitBytes;
  static constexpr uint64_t kUnitsMax = WindowGet::kItemBytesMax / kLocationUnitBytes;

  [[gnu::always_inline]] static const BucketHeader* HeaderOf(const WindowGet& get, uint64_t hash) {
    const RegionOffset bucket = get.map_.OffsetOfBucketOf(hash);
    if (ToBytes(bucket) == 0) [[unlikely]] {
      return nullptr;
    }
    const std::byte* const at = get.window_ + ToBytes(bucket);
    PrefetchLocalSpace(at, get.map_.geometry().bucket_bytes);
    return reinterpret_cast<const BucketHeader*>(at);
  }

  // Most small items lie in their bucket, not far from its header. Asked for together with the header, their lines
  // come in one latency of memory instead of two, for bandwidth that a GET has to spare.
  [[gnu::always_inline]] static void PrefetchLocalSpace(const std::byte* bucket, uint32_t bucket_bytes) {
    static_assert(kBucketBytesMin == 512);
    const auto lines = [bucket](uint32_t from) __attribute__((always_inline)) {
      for (uint32_t line = 0; line < 4; ++line) __builtin_prefetch(bucket + from + line * kCacheLineBytes);
    };
    __builtin_prefetch(bucket + 2 * kCacheLineBytes);
    __builtin_prefetch(bucket + 3 * kCacheLineBytes);
    lines(256);
    if (bucket_bytes == kBucketBytesMin) return;
    lines(512);
    lines(768);
  }

  // Where the item lies, or null if it is not one that is tried here. All bytes up to the next multiple of kCopyBytes
  // are in the region. `bytes` is what the slot says.
  [[gnu::always_inline]] static const std::byte* ItemAt(const WindowGet& get, Slot slot, uint64_t& bytes) {
    const uint64_t units = slot >> 40 & 0xfff;  // below 256 the size code is the size
    if (units - kUnitsMin > kUnitsMax - kUnitsMin) [[unlikely]] {
      return nullptr;
    }
    bytes = units * kLocationUnitBytes;
    const uint64_t at = ToBytes(LocationOf(slot));
    if (at + (bytes + kCopyBytes - 1) / kCopyBytes * kCopyBytes > get.map_.geometry().region_bytes) [[unlikely]] {
      return nullptr;
    }
    return get.window_ + at;
  }

  [[gnu::always_inline]] static bool Judge(const WindowGet& get, std::string_view key, Slot slot, uint64_t bytes,
                                           ItemView& item) {
    const ItemExpectation expected{get.map_.geometry().incarnation, LocationOf(slot), key, 0,
                                   get.map_.server_clock()};
    return JudgeItem(std::span<const std::byte>(get.buffer_, bytes), expected, item) == ItemVerdict::kCurrent;
  }

  static std::byte* Buffer(WindowGet& get) { return get.buffer_; }
};

namespace {

using Steps = WindowGetSteps;

bool FindNothing(WindowGet&, std::string_view, uint64_t, ItemView&, Slot&) { return false; }
bool FindNothingAt(WindowGet&, std::string_view, Slot, ItemView&) { return false; }

bool FindAtBaseline(WindowGet& get, std::string_view key, Slot slot, ItemView& item) {
  uint64_t bytes = 0;
  const std::byte* from = Steps::ItemAt(get, slot, bytes);
  if (from == nullptr) return false;
  RacyCopy(Steps::Buffer(get), from, bytes);
  return Steps::Judge(get, key, slot, bytes, item);
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

#define KVD_AVX2_LAMBDA __attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt"), always_inline))
#define KVD_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]

// Four words at a time, the header's first two and the two behind it included, whose bits are dropped at the end. An empty slot that matches
// tag zero leads to no plausible item.
KVD_AVX2 inline uint32_t MatchTagsAvx2(const BucketHeader* header, uint32_t tag) {
  const __m256i mask = _mm256_set1_epi64x(static_cast<int64_t>(kSlotTagMask));
  const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(uint64_t{tag} << kSlotTagShift));
  const auto* words = reinterpret_cast<const __m256i*>(header);
  const auto four = [&](int i) KVD_AVX2_LAMBDA {
    const __m256i equal = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_loadu_si256(words + i), mask), wanted);
    return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
  };
  static_assert(kSlotsPerHeader == 16 && kBucketBytesMin >= 5 * sizeof(__m256i));
  const uint32_t matches = four(0) | four(1) << 4 | four(2) << 8 | four(3) << 12 | four(4) << 16;
  return matches >> 2 & 0xffff;
}

// 32-byte stores, so that every load of the checksum that follows is served from one of them. Copies up to 31 bytes more.
KVD_AVX2 inline void RacyCopyAvx2(std::byte* to, const std::byte* from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += 32) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + done),
                       _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + done)));
  }
  asm volatile("" ::: "memory");  // what was copied is not loaded again
}

KVD_AVX2 bool FindAtAvx2(WindowGet& get, std::string_view key, Slot slot, ItemView& item) {
  uint64_t bytes = 0;
  const std::byte* from = Steps::ItemAt(get, slot, bytes);
  if (from == nullptr) return false;
  RacyCopyAvx2(Steps::Buffer(get), from, bytes);
  return Steps::Judge(get, key, slot, bytes, item);
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

void WindowGet::Prefetch(uint64_t hash) const {
  if (window_ == nullptr) return;
  const BucketHeader* const header = Steps::HeaderOf(*this, hash);
  __builtin_prefetch(header);
  __builtin_prefetch(reinterpret_cast<const std::byte*>(header) + kCacheLineBytes);
}

WindowGet::WindowGet(const std::byte* window, const uint32_t* ended, const RegionMap& map)
    : window_(window),
      lifeline_(reinterpret_cast<const uint32_t*>(window + (window == nullptr ? 0 : ToBytes(kLifelineOffset)))),
      ended_(ended),
      map_(map),
      find_(FindBaseline),
      find_at_(FindAtBaseline) {
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
