// Random operations on a store, against a map: each has the outcome that the map's would have, or
// the region is full; and the store's own bookkeeping holds.
#include <map>
#include <memory>
#include <string>

#include "common/base/hash.h"
#include "server/store/shard.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fake_clock.h"

namespace kvd::fuzz {
namespace {

constexpr uint64_t kMemoryBytes = uint64_t{4} << 20;
constexpr uint64_t kKeys = 300;
constexpr uint64_t kLongMax = uint64_t{100} << 10;

class Run {
 public:
  explicit Run(bool evict) : evicts_(evict) {
    auto region = Region::Create({.memory_bytes = kMemoryBytes,
                                  .hugepages = HugepagePolicy::kOff,
                                  .prefault_threads = 1,
                                  .incarnation = 7});
    Require(region.ok(), "there is a region");
    region_ = *std::move(region);
    auto shard = Shard::Create(*region_, 0, clock_, {.evict = evict});
    Require(shard.ok(), "and a shard");
    shard_ = *std::move(shard);
  }

  void Step(Feed& feed) {
    const std::string key = "k" + std::to_string(feed.Below(kKeys));
    switch (feed.Below(8)) {
      case 0:
      case 1:
        Put(key, std::string(feed.Take<uint16_t>() % 2000, static_cast<char>(++fill_)), feed);
        break;
      case 2:  // one that takes much of the memory
        Put(key,
            std::string(feed.Take<uint32_t>() % (kMemoryBytes / 4), static_cast<char>(++fill_)),
            feed);
        break;
      case 3:
        Delete(key);
        break;
      case 4:
        Append(key, feed);
        break;
      case 5:
        clock_.AdvanceMs(feed.Take<uint8_t>());
        shard_->RefreshClock();
        break;
      default:
        Find(key);
    }
  }

  void Check() {
    const absl::Status status = shard_->CheckInvariants();
    if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    Require(status.ok(), "the store's bookkeeping holds");
    if (!evicts_) Require(shard_->stats().items == model_.size(), "as many items as the map has");
    for (const auto& [key, value] : model_) Find(key);
  }

 private:
  uint64_t Hash(std::string_view key) const {
    return HashKey(key, region_->geometry().hash_seed());
  }

  void Put(const std::string& key, const std::string& value, Feed& feed) {
    StoreOptions options;
    options.condition = static_cast<WriteCondition>(feed.Below(3));
    const StoreResult result = shard_->Put(key, Hash(key), value, options);
    Forget();
    const bool there = model_.contains(key);
    switch (result.status) {
      case StoreStatus::kOk:
        Require(evicts_ || options.condition != WriteCondition::kIfAbsent || !there,
                "if absent: it was");
        Require(options.condition != WriteCondition::kIfPresent || there, "if present: it was");
        model_[key] = value;
        break;
      case StoreStatus::kConditionFailed:
        Require(there && options.condition == WriteCondition::kIfAbsent, "it was there");
        break;
      case StoreStatus::kNotFound:
        Require((evicts_ || !there) && options.condition == WriteCondition::kIfPresent,
                "it was not there");
        break;
      default:
        Require(result.status == StoreStatus::kNoSpace, "or the region is full");
    }
  }

  void Delete(const std::string& key) {
    const StoreResult result = shard_->Delete(key, Hash(key), {});
    Require(result.status == StoreStatus::kOk || result.status == StoreStatus::kNotFound,
            "a delete needs no room");
    const bool was = model_.erase(key) == 1;
    Require(evicts_ || was == (result.status == StoreStatus::kOk), "it was there or not");
  }

  void Append(const std::string& key, Feed& feed) {
    const std::string piece(feed.Take<uint8_t>(), static_cast<char>(++fill_));
    const StoreResult result =
        shard_->Extend(key, Hash(key), Shard::End::kBack, piece, kLongMax, {});
    Forget();
    if (result.status == StoreStatus::kOk) model_[key] += piece;
  }

  void Find(const std::string& key) {
    ItemView item;
    Slot slot;
    const bool found = shard_->Find(key, Hash(key), item, slot) == StoreStatus::kOk;
    const auto known = model_.find(key);
    Require(!found || known != model_.end(), "what is found was written");
    Require(evicts_ || found == (known != model_.end()), "what was written is found");
    if (found) Require(item.value == known->second, "as it was written last");
  }

  // After a write that may have evicted: what is not there any more.
  void Forget() {
    if (!evicts_ || shard_->stats().evicted_items == evicted_) return;
    evicted_ = shard_->stats().evicted_items;
    for (auto known = model_.begin(); known != model_.end();) {
      ItemView item;
      Slot slot;
      const bool there = shard_->Find(known->first, Hash(known->first), item, slot) == StoreStatus::kOk;
      known = there ? std::next(known) : model_.erase(known);
    }
  }

  const bool evicts_;
  test::FakeClock clock_;
  std::unique_ptr<Region> region_;
  std::unique_ptr<Shard> shard_;
  std::map<std::string, std::string> model_;
  uint8_t fill_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvd::fuzz::Feed feed(data, size);
  constexpr int kStepsMax = 1000;
  kvd::fuzz::Run run(feed.Below(2) == 1);
  for (int steps = 0; steps < kStepsMax && !feed.empty(); ++steps) run.Step(feed);
  run.Check();
  return 0;
}
