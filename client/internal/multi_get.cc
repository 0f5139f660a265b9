#include "client/internal/multi_get.h"

#include <algorithm>
#include <utility>

#include "client/internal/first_read.h"
#include "client/internal/item_result.h"
#include "client/internal/transfer_time.h"

namespace kvd {
namespace {

// GETs of one batch that are under way at once: a chain of READs is no longer than that.
constexpr size_t kLanes = 64;

}  // namespace

void MultiGetter::Run(std::span<const std::string_view> keys, std::span<GetResult> results,
                      int64_t deadline_ns, bool allow_for_size) {
  deadline_ns_ = deadline_ns;
  allows_for_size_ = allow_for_size;
  session_ = connection_.session();
  keys_ = keys;
  results_ = results;
  next_ = 0;
  lanes_.resize(kLanes);
  free_.clear();
  for (Lane& lane : lanes_) free_.push_back(&lane);
  // Without a text no memory is allocated for it; nobody but the caller sees it.
  for (GetResult& result : results)
    result.status = absl::Status(absl::StatusCode::kUnavailable, "");
  for (;;) {
    while (next_ < keys_.size() && !free_.empty()) {
      if (!Begin(next_)) break;
      ++next_;
    }
    if (under_way_ == 0) return;
    connection_.Advance();
    if (session_ == nullptr) return;
    if (session_->reads.Dispatch()) continue;
    if (!connection_.Wait(deadline_ns_).ok()) return Abandon();
  }
}

bool MultiGetter::Begin(size_t index) {
  absl::StatusOr<ReadSlot*> slot = session_->slots.Take();
  if (!slot.ok()) {
    if (under_way_ == 0)
      next_ = keys_.size();  // no memory for even one: the caller has another way
    return false;
  }
  Lane& lane = *free_.back();
  free_.pop_back();
  const std::string_view key = keys_[index];
  const uint64_t hash = session_->Hash(key);
  const Slot remembered = session_->locations->Find(hash);
  lane = Lane{index, hash, *slot, remembered, FirstReadOf(*session_, hash, remembered)};
  ++under_way_;
  if (lane.first.length != 0) [[likely]] {
    Post(lane, lane.first);
  } else {
    BeginByMachine(lane, {});
  }
  return true;
}

void MultiGetter::BeginByMachine(Lane& lane, std::span<const std::byte> bytes) {
  const RegionOffset offset = std::exchange(lane.first, {}).offset;
  Step(lane, StartAfter(lane.slot->machine, keys_[lane.index], lane.hash, lane.remembered, offset,
                        bytes));
}

void MultiGetter::Found(Lane& lane, const ItemView& item, Slot slot) {
  GetResult& result = results_[lane.index];
  AssignValue(item.value, result.value);
  if (item.expiry_unix_us != 0) connection_.RefreshClock();
  result.info = InfoOf(item);
  result.status = absl::OkStatus();
  if (slot == lane.remembered) ++counters_.location_hits;
  session_->locations->Remember(lane.hash, slot);
  connection_.NoteHit(lane.hash, item.value.size());
  End(lane);
}

void MultiGetter::Step(Lane& lane, GetMachine::Need need) {
  GetMachine& machine = lane.slot->machine;
  switch (need) {
    case GetMachine::Need::kFound:
      return Found(lane, machine.item(), machine.slot());
    case GetMachine::Need::kAbsent:
      session_->locations->Forget(lane.hash);
      results_[lane.index].status = absl::NotFoundError("no such key");
      return End(lane);
    case GetMachine::Need::kAskServer:
      return End(lane);
    case GetMachine::Need::kRead:
      break;
  }
  Post(lane, machine.read());
}

void MultiGetter::Post(Lane& lane, const GetMachine::Read& read) {
  const absl::StatusOr<std::byte*> into = lane.slot->BufferFor(read);
  if (!into.ok()) return End(lane);
  if (allows_for_size_)
    deadline_ns_ += std::min(TransferAllowanceNs(read.length), INT64_MAX - deadline_ns_);
  session_->reader.CountRead(read.length);
  ReadTicket& ticket = lane.slot->ticket;
  ticket.offset = read.offset;
  ticket.length = read.length;
  ticket.into = *into;
  ticket.owner = this;
  ticket.context = &lane;
  session_->reads.Submit(ticket);
}

[[gnu::flatten]] void MultiGetter::OnRead(ReadTicket& ticket) {
  Lane& lane = *static_cast<Lane*>(ticket.context);
  if (!ticket.ok) return End(lane);
  const std::span<const std::byte> bytes(ticket.into, ticket.length);
  if (lane.first.length != 0) [[likely]] {
    const std::string_view key = keys_[lane.index];
    ItemView item;
    Slot slot = lane.remembered;
    const bool found = slot != kEmptySlot ? FoundAt(*session_, key, slot, bytes, item)
                                          : FoundInBucket(*session_, key, lane.hash,
                                                          lane.first.offset, bytes, item, slot);
    return found ? Found(lane, item, slot) : BeginByMachine(lane, bytes);
  }
  Step(lane, lane.slot->machine.Resume(bytes));
}

void MultiGetter::End(Lane& lane) {
  session_->slots.Give(std::exchange(lane.slot, nullptr));
  free_.push_back(&lane);
  --under_way_;
}

// The deadline has passed.
void MultiGetter::Abandon() {
  for (Lane& lane : lanes_) {
    if (lane.slot == nullptr) continue;
    results_[lane.index].status = absl::DeadlineExceededError("the READs were not done in time");
    session_->reads.GiveUp(lane.slot->ticket);
    session_->slots.Give(std::exchange(lane.slot, nullptr));
  }
  under_way_ = 0;
}

// It takes the slots with it.
void MultiGetter::SessionEnds() {
  for (Lane& lane : lanes_) lane.slot = nullptr;
  under_way_ = 0;
  session_ = nullptr;
}

}  // namespace kvd
