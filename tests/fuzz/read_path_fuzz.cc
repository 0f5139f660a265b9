// The read path against memory in which anything may have changed, between reads as well: a GET
// ends, reads nothing outside of the region, and what it finds is what was written for its key.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "client/internal/get_machine.h"
#include "common/base/hash.h"
#include "server/store/shard.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fake_clock.h"

namespace kvd::fuzz {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{4} << 20;
constexpr uint64_t kItems = 600;
constexpr int kReadsMax = 4000;

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }
std::string ValueOf(uint64_t i) {
  std::string value = "value of " + KeyOf(i) + ".";
  const uint64_t length = i % 50 == 0 ? 3000 : 20 + i % 200;
  while (value.size() < length) value += static_cast<char>('a' + (value.size() + i) % 26);
  return value;
}

// A region as a store has left it, always the same.
class Image {
 public:
  Image() {
    auto region = Region::Create(
        {.memory_bytes = kMemoryBytes, .hugepages = HugepagePolicy::kOff, .incarnation = 7});
    Require(region.ok(), "there is a region");
    region_ = *std::move(region);
    auto shard = Shard::Create(*region_, 0, clock_, {});
    Require(shard.ok(), "and a shard");
    for (uint64_t i = 0; i < kItems; ++i) {
      const std::string key = KeyOf(i);
      const StoreResult put = (*shard)->Put(key, Hash(key), ValueOf(i), {});
      Require(put.status == StoreStatus::kOk, "the items have room");
      slots_.push_back(put.slot);
    }
    shard_ = *std::move(shard);
    for (uint64_t i = 0; i < kItems; ++i) {  // where growth has left them
      ItemView item;
      Require(shard_->Find(KeyOf(i), Hash(KeyOf(i)), item, slots_[i]) == StoreStatus::kOk,
              "and are there");
    }
    bytes_.assign(region_->base(), region_->base() + region_->bytes());
  }

  const Geometry& geometry() const { return region_->geometry(); }
  uint64_t Hash(std::string_view key) const { return HashKey(key, geometry().hash_seed()); }
  Slot slot(uint64_t item) const { return slots_[item]; }
  std::span<std::byte> bytes() { return bytes_; }

 private:
  test::FakeClock clock_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<Shard> shard_;
  std::vector<Slot> slots_;
  std::vector<std::byte> bytes_;
};

// Changes of the image that are taken back.
class Changes {
 public:
  explicit Changes(Image& image) : image_(image) {}
  ~Changes() {
    for (size_t i = old_.size(); i > 0; --i) image_.bytes()[old_[i - 1].at] = old_[i - 1].byte;
  }

  void Write(uint64_t at, std::byte byte) {
    if (at >= image_.bytes().size()) return;
    old_.push_back({at, image_.bytes()[at]});
    image_.bytes()[at] = byte;
  }

  // One change that the input describes, at one of the places that matter.
  void Make(Feed& feed, std::span<const uint64_t> places) {
    uint64_t at = places[feed.Below(places.size())];
    if (feed.Below(4) == 0) at = ToBytes(LocationOf(image_.slot(feed.Below(kItems))));
    at += feed.Take<uint16_t>() % 1100;
    const uint64_t length = 1 + feed.Below(64);
    switch (feed.Below(3)) {
      case 0:
        for (uint64_t i = 0; i < length; ++i) Write(at + i, feed.Take<std::byte>());
        break;
      case 1:
        if (at < image_.bytes().size()) Write(at, image_.bytes()[at] ^ feed.Take<std::byte>());
        break;
      default: {  // what lies elsewhere in the region
        const uint64_t from = feed.Below(2) == 0
                                  ? ToBytes(LocationOf(image_.slot(feed.Below(kItems))))
                                  : feed.Take<uint32_t>() % (kMemoryBytes - 2048);
        for (uint64_t i = 0; i < length * 16; ++i) Write(at + i, image_.bytes()[from + i]);
      }
    }
  }

 private:
  struct Old {
    uint64_t at;
    std::byte byte;
  };
  Image& image_;
  std::vector<Old> old_;
};

void Get(Image& image, Feed& feed) {
  const uint64_t wanted = feed.Below(kItems + 8);
  const std::string key = KeyOf(wanted);
  const uint64_t hash = image.Hash(key);
  RegionMap map(image.geometry(), uint64_t{1} << 20);
  GetMachine machine(map, feed.Below(2) == 1);
  // Places that a GET of the key reads.
  std::array<uint64_t, 4> places{image.geometry().directory_offset, 0,
                                 ToBytes(LocationOf(image.slot(wanted % kItems))), 4096};
  Changes changes(image);
  const auto read_more = [&] { return feed.Below(3) == 0; };
  if (read_more()) changes.Make(feed, places);

  const bool remembered = feed.Below(3) == 0;
  GetMachine::Need need = remembered ? machine.StartAt(key, hash, image.slot(feed.Below(kItems)))
                                     : machine.Start(key, hash);
  std::array<std::vector<std::byte>, 3> buffers;
  for (int reads = 0; need == GetMachine::Need::kRead; ++reads) {
    Require(reads < kReadsMax, "a GET ends");
    const GetMachine::Read& read = machine.read();
    Require(image.geometry().Contains(read.offset, read.length), "reads lie in the region");
    places[1] = ToBytes(read.offset);
    if (!feed.empty() && read_more()) changes.Make(feed, places);
    std::vector<std::byte>& into = buffers[static_cast<size_t>(read.into)];
    const auto from = image.bytes().subspan(ToBytes(read.offset), read.length);
    into.assign(from.begin(), from.end());
    need = machine.Resume(into);
  }
  if (need != GetMachine::Need::kFound) return;
  Require(machine.item().key == key, "what is found is the key's");
  Require(wanted < kItems && machine.item().value == ValueOf(wanted), "and was written for it");
}

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const image = new kvd::fuzz::Image;
  kvd::fuzz::Feed feed(data, size);
  for (int gets = 0; gets < 8 && !feed.empty(); ++gets) kvd::fuzz::Get(*image, feed);
  return 0;
}
