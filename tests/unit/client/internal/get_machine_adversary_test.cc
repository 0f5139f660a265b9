// Bytes of every kind for every read: the machine ends within its bounds, reads inside the region
// only, and never returns bytes that are not a whole item of the key.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"
#include "tests/unit/client/internal/machine_driver.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {
namespace {

using Need = GetMachine::Need;

constexpr uint64_t kIncarnation = 0xa5a5a5a5deadbeef;

// What a machine may read at most, whatever it meets: in each round the directory, a header, its
// items, a chain with its items, a look at the first header again; besides, redirects with three
// reads each.
constexpr size_t kReadsPerHeader = 1 + kSlotsPerHeader;
constexpr size_t kReadsMax =
    (GetMachine::kRoundsMax + 1) * (2 + (GetMachine::kChainMax + 1) * kReadsPerHeader) +
    3 * GetMachine::kRedirectsMax;

class Adversary {
 public:
  Adversary(TestRegion& region, Random& random) : region_(region), random_(random) {}

  // Spoils what a read returned, in one of many ways, or leaves it.
  void Spoil(const GetMachine::Read& read, std::span<std::byte> bytes) {
    switch (random_.Uniform(10)) {
      case 0:
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.Next());
        break;
      case 1:
        std::memset(bytes.data(), random_.OneIn(2) ? 0 : 0xff, bytes.size());
        break;
      case 2:
        for (uint64_t flips = 1 + random_.Uniform(3); flips > 0; --flips) {
          bytes[random_.Uniform(bytes.size())] ^= std::byte{1} << random_.Uniform(8);
        }
        break;
      case 3: {  // the bytes of another place
        const uint64_t from = random_.Uniform((TestRegion::kRegionBytes - bytes.size()) / 8) * 8;
        std::memcpy(bytes.data(), region_.At(RegionOffset{from}), bytes.size());
        break;
      }
      case 4: {  // the tail of an earlier read of the same kind: torn
        std::vector<std::byte>& earlier = earlier_[read.into];
        const size_t common = std::min(earlier.size(), bytes.size());
        const size_t cut = random_.Uniform(common / 8 + 1) * 8;
        std::copy(earlier.begin() + static_cast<ptrdiff_t>(cut),
                  earlier.begin() + static_cast<ptrdiff_t>(common),
                  bytes.begin() + static_cast<ptrdiff_t>(cut));
        break;
      }
      case 5:
        if (bytes.size() >= kBucketHeaderBytes) SpoilSealed(read, bytes);
        break;
      default:
        break;
    }
    if (random_.OneIn(3)) earlier_[read.into].assign(bytes.begin(), bytes.end());
  }

  std::string_view wanted;

 private:
  // A header that verifies, with content that the store never writes.
  void SpoilSealed(const GetMachine::Read& read, std::span<std::byte> bytes) {
    BucketHeader header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    for (Slot& slot : header.slots) {
      if (random_.OneIn(2)) continue;
      slot = random_.Next();
      if (random_.OneIn(2))
        slot = PackSlot(SlotTag(region_.Hash(wanted)), random_.Uniform(5000), RandomPlace());
    }
    if (random_.OneIn(2)) {
      header.link =
          PackLink(static_cast<uint32_t>(random_.Uniform(256)),
                   random_.OneIn(2) ? RandomPlace() : read.offset, random_.Next() & 0xffff);
    }
    const bool chained = read.into == GetMachine::Into::kScratch;
    const auto bucket = static_cast<uint32_t>(random_.Uniform(region_.bucket_count(0)));
    header.checksum = HeaderChecksum(
        header, HeaderSeed(kIncarnation, 0,
                           random_.OneIn(2) ? region_.BucketOfKey(wanted) : BucketIndex{bucket},
                           chained ? read.offset : RegionOffset{0}));
    std::memcpy(bytes.data(), &header, sizeof(header));
  }

  RegionOffset RandomPlace() {
    return RegionOffset{random_.Uniform(TestRegion::kRegionBytes / 8 + 100) * 8};
  }

  TestRegion& region_;
  Random& random_;
  std::map<GetMachine::Into, std::vector<std::byte>> earlier_;
};

struct World {
  explicit World(Random& random_source) : random(random_source), region(kIncarnation) {
    region.reuse_memory = true;
    for (int i = 0; i < 80; ++i) {
      const std::string key = "key" + std::to_string(i);
      slots[key] = region.Put({.key = key, .value = ValueOf(key, 0)}, false);
      if (i % 10 == 9) region.Split(0);
    }
  }

  // A value that says whose it is and of which write.
  static std::string ValueOf(const std::string& key, uint64_t number) {
    std::string value = key + "=" + std::to_string(number) + ";";
    while (value.size() < 20 + number % 300) value += value.substr(0, 50);
    return value;
  }

  // Writes as the store would, between two reads.
  void Write() {
    auto& [key, slot] =
        *std::next(slots.begin(), static_cast<ptrdiff_t>(random.Uniform(slots.size())));
    slot = region.Replace(slot, {.key = key, .value = ValueOf(key, ++writes)});
  }

  void CheckFound(const MachineDriver& driver, const std::string& key, const ItemView& item) const {
    if (item.key != key) FAIL("the item of another key");
    const uint64_t number =
        std::strtoull(std::string(item.value.substr(key.size() + 1)).c_str(), nullptr, 10);
    if (number > writes || item.value != ValueOf(key, number))
      FAIL("bytes that were never written for " << key);
    if (driver.bad_reads() != 0) FAIL("a read outside of the region");
  }

  Random& random;
  TestRegion region;
  std::map<std::string, Slot> slots;
  uint64_t writes = 0;
};

TEST_CASE(
    "GetMachine: against an adversary it ends, stays inside the region and returns nothing wrong") {
  Random random(Seed());
  World world(random);
  Adversary adversary(world.region, random);
  int found = 0;
  int asked = 0;
  for (int run = 0; run < 20'000; ++run) {
    MachineDriver driver(world.region, random.OneIn(2));
    driver.after_read = [&](int, const GetMachine::Read& read, std::span<std::byte> bytes) {
      adversary.Spoil(read, bytes);
    };
    for (int i = 0; i < 3; ++i) {  // the map has learned from spoiled bytes too
      const std::string key = "key" + std::to_string(random.Uniform(100));
      adversary.wanted = key;
      const Slot remembered = random.OneIn(2) ? random.Next() : world.slots.begin()->second;
      const Need need = random.OneIn(3)   ? driver.GetAt(key, remembered)
                        : random.OneIn(8) ? driver.GetHeld(key, remembered, random.Uniform(2000))
                                          : driver.Get(key);
      if (need == Need::kFound) world.CheckFound(driver, key, driver.machine().item());
      found += need == Need::kFound ? 1 : 0;
      asked += need == Need::kAskServer ? 1 : 0;
      if (driver.bad_reads() != 0) FAIL("a read outside of the region, run " << run);
      if (driver.reads().size() > kReadsMax) FAIL("too many reads, run " << run);
      if (driver.machine().rounds() > GetMachine::kRoundsMax + 1)
        FAIL("too many rounds, run " << run);
    }
  }
  CHECK(found > 1000);  // it was not all noise
  CHECK(asked > 100);
}

TEST_CASE(
    "GetMachine: while keys are replaced and buckets split and merged, each is found in a value of "
    "its own, never missed") {
  Random random(Seed());
  World world(random);
  MachineDriver driver(world.region);
  uint64_t served = 0;
  for (int run = 0; run < 20'000; ++run) {
    const std::string key = "key" + std::to_string(random.Uniform(80));
    driver.before_read = [&](int, const GetMachine::Read&) {
      if (world.writes < 20'000 && random.OneIn(8)) world.Write();
      if (random.OneIn(50) && world.region.bucket_count(0) < 200) world.region.Split(0);
      if (random.OneIn(40) && world.region.bucket_count(0) > 1) world.region.Merge(0);
    };
    const Need need = random.OneIn(2) ? driver.Get(key) : driver.GetAt(key, world.slots[key]);
    if (need == Need::kAbsent) FAIL("missed " << key << ", which is there, in run " << run);
    if (need != Need::kFound) continue;
    world.CheckFound(driver, key, driver.machine().item());
    ++served;
  }
  CHECK(served > 19'000);
  CHECK(driver.machine().counters().moved_items > 0);
  CHECK(driver.machine().counters().redirects > 100);
}

TEST_CASE(
    "GetMachine: reads torn at any word between two states of the region are never returned, nor "
    "missed") {
  Random random(Seed());
  World world(random);
  MachineDriver driver(world.region);
  uint64_t served = 0;
  for (int run = 0; run < 20'000; ++run) {
    const std::string key = "key" + std::to_string(random.Uniform(80));
    driver.after_read = [&](int, const GetMachine::Read& read, std::span<std::byte> bytes) {
      if (world.writes >= 20'000 || !random.OneIn(3)) return;
      for (uint64_t writes = 1 + random.Uniform(3); writes > 0; --writes) world.Write();
      for (size_t at = 0; at < bytes.size(); at += 8) {  // each word before or after the writes
        if (random.OneIn(2)) std::memcpy(bytes.data() + at, world.region.At(read.offset + at), 8);
      }
    };
    const Need need = driver.Get(key);
    if (need == Need::kAbsent) FAIL("missed " << key << ", which is there, in run " << run);
    if (need != Need::kFound) continue;
    world.CheckFound(driver, key, driver.machine().item());
    ++served;
  }
  CHECK(served > 10'000);
}

}  // namespace
}  // namespace kvd::test
