#include "tests/linearizability/search.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/hash.h"

namespace kvd::test {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// A list of 0..n-1 out of which elements are taken, and put back in the opposite order.
class ShrinkingList {
 public:
  explicit ShrinkingList(uint32_t size) : next_(size + 1), previous_(size + 1) {
    for (uint32_t i = 0; i <= size; ++i) {
      next_[i] = i == size ? 0 : i + 1;
      previous_[i] = i == 0 ? size : i - 1;
    }
  }
  uint32_t First() const { return Next(kNone); }
  // The one behind `at`, which may have been taken out; kNone at the end.
  uint32_t Next(uint32_t at) const { return next_[at + 1] - 1; }
  void Take(uint32_t at) {
    next_[previous_[at + 1]] = next_[at + 1];
    previous_[next_[at + 1]] = previous_[at + 1];
  }
  void PutBack(uint32_t at) {
    next_[previous_[at + 1]] = at + 1;
    previous_[next_[at + 1]] = at + 1;
  }

 private:
  std::vector<uint32_t> next_;  // shifted by one: element 0 is the head, and kNone + 1
  std::vector<uint32_t> previous_;
};

struct Key128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Key128&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key128& key) {
    return H::combine(std::move(h), key.low);
  }
};

// What the next operation in the order may be, in the order in which it is tried.
enum class Stage : uint8_t { kRequired, kOptional, kVanish, kExhausted };

class Searcher {
 public:
  Searcher(const KeyHistory& history, const Rules& rules, uint64_t steps_max)
      : history_(history),
        rules_(rules),
        steps_max_(steps_max),
        events_(static_cast<uint32_t>(2 * history.required.size())),
        optional_(static_cast<uint32_t>(history.optional.size())),
        optional_taken_(history.optional.size(), false),
        required_left_(history.required.size()) {
    SortEvents();
    SortDeadlines();
  }

  SearchResult Run() {
    ScanFromHere();
    while (required_left_ != 0) {
      if (result_.steps > steps_max_) {
        result_.verdict = Verdict::kUndecided;
        return result_;
      }
      if (!Advance() && !Backtrack()) {
        result_.verdict = Verdict::kViolation;
        return result_;
      }
    }
    return result_;
  }

 private:
  struct Event {
    int64_t time_ns;
    bool is_return;
    uint32_t operation;
  };

  // An element of the order so far, and where the search goes on if it turns out wrong.
  struct Choice {
    Stage stage;
    uint32_t at;  // event of the call, or index of the optional operation
    bool forced;  // nothing else needs to be tried in its place
    KeyState before;
    Key128 set_before;
    int64_t now_before;
    // Where the scan stood.
    uint32_t first_return_before;
  };

  void SortDeadlines() {
    const auto add = [&](const Operation& operation) {
      if (operation.effect_until_ns != kNever) deadlines_.push_back(operation.effect_until_ns);
      if (operation.expiry_ns != kNever) {
        deadlines_.push_back(operation.expiry_ns + rules_.expiry_error_ns);
      }
    };
    for (const Operation& operation : history_.required) add(operation);
    for (const Operation& operation : history_.optional) add(operation);
    std::sort(deadlines_.begin(), deadlines_.end());
  }

  void SortEvents() {
    for (uint32_t i = 0; i < history_.required.size(); ++i) {
      sorted_.push_back({history_.required[i].invoked_ns, false, i});
      sorted_.push_back({history_.required[i].returned_ns, true, i});
    }
    // Those of one moment count as concurrent.
    std::sort(sorted_.begin(), sorted_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.time_ns, a.is_return, a.operation) <
             std::tie(b.time_ns, b.is_return, b.operation);
    });
    return_event_.resize(history_.required.size());
    for (uint32_t i = 0; i < sorted_.size(); ++i) {
      if (sorted_[i].is_return) return_event_[sorted_[i].operation] = i;
    }
  }

  // Begins to look for the next operation, with those that only read.
  void ScanFromHere() {
    stage_ = Stage::kRequired;
    TakeReads();
    at_ = events_.First();
  }

  int64_t FirstReturnNs() const {
    return first_return_ == kNone ? kNever : sorted_[first_return_].time_ns;
  }

  // Takes every operation that may be next, fits, and changes nothing.
  void TakeReads() {
    uint32_t at = events_.First();
    while (at != kNone && !sorted_[at].is_return) {
      const uint32_t operation = sorted_[at].operation;
      const bool take = TakesAtOnce(history_.required[operation]);
      if (take) Take(Stage::kRequired, at, true, state_);
      at = events_.Next(at);
      if (take && at == return_event_[operation]) at = events_.Next(at);
    }
    first_return_ = at;
    if (at != kNone && required_left_ <= least_left_) {
      least_left_ = required_left_;
      result_.stuck_at = sorted_[at].operation;
    }
  }

  // True for an operation that fits here and, with this answer, changes nothing wherever it stands.
  bool TakesAtOnce(const Operation& operation) {
    const bool only_reads = IsRead(operation.kind) || operation.outcome != Outcome::kOk;
    if (!only_reads || operation.kind == OperationKind::kLost) return false;
    KeyState after;
    return Fits(operation, after) && after == state_ && !PassesDeadline(operation.invoked_ns);
  }

  // Whether something that could still happen now can happen no more at `to_ns`.
  bool PassesDeadline(int64_t to_ns) const {
    const auto next = std::lower_bound(deadlines_.begin(), deadlines_.end(), now_ns_);
    return next != deadlines_.end() && *next < to_ns;
  }

  bool Fits(const Operation& operation, KeyState& after) {
    ++result_.steps;
    return Step(state_, operation, rules_, std::max(now_ns_, operation.invoked_ns), after);
  }

  bool InVersionOrder(uint32_t operation) const {
    return !MadeVersion(history_.required[operation]) ||
           history_.version_order[versions_taken_] == operation;
  }

  // Puts one more operation into the order; false if none is left to try here.
  bool Advance() {
    if (stage_ == Stage::kRequired) {
      for (; at_ != first_return_; at_ = events_.Next(at_)) {
        const uint32_t operation = sorted_[at_].operation;
        if (!InVersionOrder(operation)) continue;
        if (TryTake(Stage::kRequired, at_, history_.required[operation])) return true;
      }
      stage_ = Stage::kOptional;
      at_ = optional_.First();
    }
    if (stage_ == Stage::kOptional) {
      for (; at_ != kNone; at_ = optional_.Next(at_)) {
        const Operation& operation = history_.optional[at_];
        if (operation.invoked_ns > FirstReturnNs()) break;
        if (std::max(now_ns_, operation.invoked_ns) > operation.effect_until_ns) continue;
        const int same = history_.same_before[at_];
        if (same >= 0 && !optional_taken_[static_cast<size_t>(same)]) continue;
        if (TryTake(Stage::kOptional, at_, operation)) return true;
      }
      stage_ = Stage::kVanish;
    }
    if (stage_ == Stage::kVanish) {
      stage_ = Stage::kExhausted;
      const int64_t from_ns = MayVanishFromNs(state_, rules_);
      if (from_ns != kNever && from_ns <= FirstReturnNs()) {
        ++result_.steps;
        const KeyState after = VanishedBy(FirstReturnNs(), state_, rules_);
        const int64_t now_ns = std::max(now_ns_, from_ns);
        if (IsNew(set_, after, now_ns)) {
          Take(Stage::kVanish, 0, false, after);
          now_ns_ = now_ns;
          ScanFromHere();
          return true;
        }
      }
    }
    return false;
  }

  bool TryTake(Stage stage, uint32_t at, const Operation& operation) {
    KeyState after;
    if (!Fits(operation, after) || MakesLastNeedless(operation, after)) return false;
    if (!IsNew(SetWith(stage, at), after, std::max(now_ns_, operation.invoked_ns))) return false;
    Take(stage, at, false, after);
    ScanFromHere();
    return true;
  }

  // True if the last element of the order, which need not have happened, has made no difference to
  // what `operation` does: without it there are more ways to go on.
  bool MakesLastNeedless(const Operation& operation, const KeyState& after) {
    if (choices_.empty()) return false;
    const Choice& last = choices_.back();
    if (last.stage == Stage::kRequired) return false;
    ++result_.steps;
    KeyState without;
    const int64_t now_ns = std::max(last.now_before, operation.invoked_ns);
    return Step(last.before, operation, rules_, now_ns, without) && without == after;
  }

  Key128 SetWith(Stage stage, uint32_t at) const {
    const uint64_t element = uint64_t{at} * 2 + (stage == Stage::kOptional ? 1 : 0) + 1;
    return {set_.low ^ Mix64(element), set_.high ^ Mix64(element + 0xD1B54A32D192ED03)};
  }

  // Remembers that these operations have led to this state at this time; false if they have before.
  bool IsNew(const Key128& set, const KeyState& state, int64_t now_ns) {
    uint64_t hash = 0;
    for (const uint64_t word :
         {uint64_t{state.present}, uint64_t{state.version_known}, uint64_t{state.lingers},
          static_cast<uint64_t>(state.value.kind), state.value.word, state.version,
          static_cast<uint64_t>(state.expiry_ns), static_cast<uint64_t>(now_ns)}) {
      hash = Mix64(hash + 0x9E3779B97F4A7C15) ^ word;
    }
    hash = Mix64(hash);
    return seen_.insert({set.low ^ hash, set.high + Mix64(hash)}).second;
  }

  void Take(Stage stage, uint32_t at, bool forced, const KeyState& after) {
    choices_.push_back({stage, at, forced, state_, set_, now_ns_, first_return_});
    state_ = after;
    if (stage == Stage::kVanish) return;
    set_ = SetWith(stage, at);
    if (stage == Stage::kOptional) {
      now_ns_ = std::max(now_ns_, history_.optional[at].invoked_ns);
      optional_.Take(at);
      optional_taken_[at] = true;
      return;
    }
    const uint32_t operation = sorted_[at].operation;
    now_ns_ = std::max(now_ns_, history_.required[operation].invoked_ns);
    events_.Take(at);
    events_.Take(return_event_[operation]);
    --required_left_;
    if (MadeVersion(history_.required[operation])) ++versions_taken_;
  }

  void Undo(const Choice& choice) {
    state_ = choice.before;
    set_ = choice.set_before;
    now_ns_ = choice.now_before;
    first_return_ = choice.first_return_before;
    if (choice.stage == Stage::kOptional) {
      optional_.PutBack(choice.at);
      optional_taken_[choice.at] = false;
    } else if (choice.stage == Stage::kRequired) {
      const uint32_t operation = sorted_[choice.at].operation;
      events_.PutBack(return_event_[operation]);
      events_.PutBack(choice.at);
      ++required_left_;
      if (MadeVersion(history_.required[operation])) --versions_taken_;
    }
  }

  // Takes back the last operation that need not have been where it is, and goes on behind it.
  bool Backtrack() {
    while (!choices_.empty()) {
      const Choice choice = choices_.back();
      choices_.pop_back();
      Undo(choice);
      if (choice.forced) continue;
      if (choice.stage == Stage::kVanish) continue;
      stage_ = choice.stage;
      at_ = choice.stage == Stage::kRequired ? events_.Next(choice.at) : optional_.Next(choice.at);
      return true;
    }
    return false;
  }

  const KeyHistory& history_;
  const Rules& rules_;
  const uint64_t steps_max_;
  std::vector<Event> sorted_;
  std::vector<uint32_t> return_event_;
  std::vector<int64_t> deadlines_;
  ShrinkingList events_;
  ShrinkingList optional_;
  std::vector<bool> optional_taken_;
  size_t required_left_;
  size_t versions_taken_ = 0;
  std::vector<Choice> choices_;
  size_t least_left_ = SIZE_MAX;  // of required operations, on the way that came furthest
  absl::flat_hash_set<Key128> seen_;
  KeyState state_;
  Key128 set_;
  int64_t now_ns_ = std::numeric_limits<int64_t>::min();
  Stage stage_ = Stage::kRequired;
  uint32_t at_ = kNone;
  uint32_t first_return_ = kNone;
  SearchResult result_;
};

}  // namespace

SearchResult Search(const KeyHistory& history, const Rules& rules, uint64_t steps_max) {
  return Searcher(history, rules, steps_max).Run();
}

}  // namespace kvd::test
