// Which one-sided reads a client tells the server of.
#include "client/internal/hit_sampler.h"

#include <cstring>

#include "tests/support/test.h"

namespace kvd {
namespace {

// How many of `reads` reads of such a value are told.
uint64_t ToldOf(uint64_t reads, uint64_t value_bytes) {
  HitSampler sampler;
  sampler.Enable(true);
  uint64_t told = 0;
  for (uint64_t i = 0; i < reads; ++i) {
    if (sampler.Note(i, value_bytes)) told += sampler.Take().size() / sizeof(uint64_t);
  }
  return told + sampler.Take().size() / sizeof(uint64_t);
}

TEST_CASE("HitSampler: tells of one read in four of small values, and of each of large ones") {
  constexpr uint64_t kReads = 100'000;
  const auto share = [](uint64_t value_bytes) {
    return static_cast<double>(ToldOf(kReads, value_bytes)) / kReads;
  };
  CHECK(share(0) == Approx(1.0 / 4).margin(0.01));
  CHECK(share(1000) == Approx(1.0 / 4).margin(0.01));
  CHECK(share(2048) == Approx(1.0 / 2).margin(0.01));
  CHECK(share(3072) == Approx(3.0 / 4).margin(0.01));
  CHECK(ToldOf(kReads, HitSampler::kAlwaysBytes) == kReads);
  CHECK(ToldOf(kReads, UINT64_MAX) == kReads);
}

TEST_CASE("HitSampler: a large value is told of at once") {
  HitSampler sampler;
  sampler.Enable(true);
  REQUIRE(sampler.Note(1, HitSampler::kBatchBytes));
  REQUIRE(sampler.Take().size() == sizeof(uint64_t));
  REQUIRE_FALSE(sampler.anything_noted());
  REQUIRE_FALSE(sampler.Note(2, HitSampler::kBatchBytes / 2));
  REQUIRE(sampler.anything_noted());
  REQUIRE(sampler.Note(3, UINT64_MAX));
}

TEST_CASE("HitSampler: a server that does not evict is told nothing") {
  HitSampler sampler;
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(sampler.Note(1, 1 << 20));
  CHECK(sampler.Take().empty());
}

TEST_CASE("HitSampler: notes that nobody takes are replaced by later ones") {
  HitSampler sampler;
  sampler.Enable(true);
  for (uint64_t i = 0; i < HitSampler::kBatch; ++i) {
    REQUIRE(sampler.Note(i, HitSampler::kAlwaysBytes) == (i + 1 == HitSampler::kBatch));
  }
  REQUIRE(sampler.Note(1000, HitSampler::kAlwaysBytes));
  const std::string_view notes = sampler.Take();
  REQUIRE(notes.size() == HitSampler::kBatch * sizeof(uint64_t));
  uint64_t first;
  std::memcpy(&first, notes.data(), sizeof(first));
  CHECK(first == 1000);
  CHECK(sampler.Take().empty());
}

}  // namespace
}  // namespace kvd
