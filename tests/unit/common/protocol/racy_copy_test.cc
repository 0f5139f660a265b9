// The copy of memory that another process writes: the right bytes, no others, and whole words.
#include "common/protocol/racy_copy.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

TEST_CASE("RacyCopy: every length up to 4 KiB, from any word, copies exactly that") {
  Random random(Seed());
  std::vector<uint64_t> from(1024);
  for (uint64_t& word : from) word = random.Next();
  for (size_t words = 0; words <= 512; ++words) {
    const size_t skip = random.Uniform(from.size() - words);
    std::vector<uint64_t> to(words + 2, 0x5a5a5a5a5a5a5a5a);
    RacyCopy(to.data() + 1, from.data() + skip, words * 8);
    if (to.front() != 0x5a5a5a5a5a5a5a5a || to.back() != 0x5a5a5a5a5a5a5a5a)
      FAIL("wrote beyond " << words);
    if (std::memcmp(to.data() + 1, from.data() + skip, words * 8) != 0)
      FAIL("wrong bytes at length " << words);
  }
}

TEST_CASE("RacyCopy: each word is loaded whole while another thread writes it") {
  alignas(64) std::atomic<uint64_t> shared[24] = {};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      const uint64_t word = (i & 0xffffffff) << 32 | (i & 0xffffffff);
      for (auto& place : shared) place.store(word, std::memory_order_relaxed);
    }
  });
  uint64_t torn = 0;
  for (int i = 0; i < 100'000; ++i) {
    uint64_t copy[24];
    RacyCopy(copy, shared, sizeof(copy));
    for (const uint64_t word : copy) torn += word >> 32 != (word & 0xffffffff) ? 1 : 0;
    torn += RacyLoad64(&shared[3]) >> 32 > 0xffffffff ? 1 : 0;
  }
  stop = true;
  writer.join();
  CHECK(torn == 0);
}

}  // namespace
}  // namespace kvd::test
