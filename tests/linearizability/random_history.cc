#include "tests/linearizability/random_history.h"

#include <algorithm>
#include <utility>

namespace kvd::test {
namespace {

// One operation and the instant at which it takes effect; kNever: it does not.
struct Event {
  int64_t at_ns = 0;
  Operation operation;
};

// An item as the store has it, with the moment at which it will vanish.
struct Item {
  bool present = false;
  Value value;
  uint64_t version = 0;
  int64_t expiry_ns = kNever;
  int64_t vanishes_ns = kNever;
};

class Simulation {
 public:
  Simulation(Random& random, const RandomHistoryOptions& options)
      : random_(random), options_(options), items_(options.keys) {}

  std::vector<Operation> Run() {
    std::vector<Event> events = Plan();
    std::sort(events.begin(), events.end(),
              [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
    std::vector<Operation> history;
    for (Event& event : events) {
      Item& item = items_[event.operation.key];
      if (event.at_ns != kNever) {
        Vanish(item, event.at_ns);
        Operation carried_out = event.operation;
        Choose(carried_out, item);
        Carry(carried_out, item, event.at_ns);
        if (event.operation.outcome == Outcome::kUnknown && carried_out.returned_ns == kNever) {
          carried_out.outcome = Outcome::kUnknown;
          carried_out.read = {};
          carried_out.version = 0;
        }
        event.operation = carried_out;
      }
      history.push_back(event.operation);
    }
    return history;
  }

 private:
  bool Chance(double share) { return random_.NextDouble() < share; }

  int64_t Upto(int64_t most) {
    return static_cast<int64_t>(random_.Uniform(static_cast<uint64_t>(most) + 1));
  }

  std::vector<Event> Plan() {
    std::vector<Event> events;
    std::vector<int64_t> next_ns(static_cast<size_t>(options_.clients), 0);
    for (int i = 0; i < options_.operations; ++i) {
      const size_t client = random_.Uniform(next_ns.size());
      Event event;
      Operation& operation = event.operation;
      operation.key = random_.Uniform(options_.keys);
      operation.client = static_cast<uint16_t>(client);
      operation.invoked_ns = next_ns[client] + 1 + Upto(20);
      event.at_ns = operation.invoked_ns + Upto(options_.duration_ns_max / 2);
      operation.returned_ns = event.at_ns + Upto(options_.duration_ns_max / 2);
      next_ns[client] = operation.returned_ns;
      Fill(operation);
      if (Chance(options_.unknown)) {
        operation.returned_ns = kNever;
        // In time, much later, or never.
        if (Chance(0.3)) event.at_ns += Upto(20 * options_.duration_ns_max);
        if (Chance(0.3)) event.at_ns = kNever;
      } else if (Chance(options_.failed)) {
        operation.outcome = Outcome::kFailed;
        event.at_ns = kNever;
      }
      events.push_back(event);
    }
    return events;
  }

  void Fill(Operation& operation) {
    using enum OperationKind;
    static constexpr OperationKind kKinds[] = {
        kGet,       kGet,         kGet,          kGet,          kExists, kPut,    kPut,
        kPut,       kPutIfAbsent, kPutIfPresent, kPutIfVersion, kDelete, kDelete, kDeleteIfVersion,
        kIncrement, kTouch,       kAppend,       kPrepend};
    operation.kind = kKinds[random_.Uniform(std::size(kKinds) - (options_.joins ? 0 : 2))];
    operation.written = Chance(0.3) && IsPut(operation.kind) ? Number(Upto(3)) : Blob(++values_);
    operation.delta = Upto(4) - 2;
    const bool may_expire = IsPut(operation.kind) || operation.kind == kTouch;
    if (may_expire && Chance(options_.expiring)) {
      operation.expiry_ns = operation.invoked_ns + Upto(10 * options_.duration_ns_max);
    }
  }

  // What the client knew before: the version that the item has, or one that it had.
  void Choose(Operation& operation, const Item& item) {
    if (operation.kind != OperationKind::kPutIfVersion &&
        operation.kind != OperationKind::kDeleteIfVersion) {
      return;
    }
    operation.compare_version = Chance(0.7) && item.version != 0 ? item.version : item.version + 1;
  }

  void Vanish(Item& item, int64_t at_ns) {
    const bool evicted = options_.rules.eviction && random_.OneIn(20);
    if (item.present && (evicted || at_ns >= item.vanishes_ns)) item.present = false;
  }

  // A reader whose clock is ahead.
  bool MayMiss(const Item& item, int64_t at_ns) {
    return options_.rules.readers_differ && item.expiry_ns != kNever &&
           at_ns >= item.expiry_ns - options_.rules.expiry_error_ns && random_.OneIn(2);
  }

  void Store(Operation& operation, Value value, int64_t expiry_ns, Item& item) {
    item.present = true;
    item.value = value;
    item.version = versions_ += 1 + random_.Uniform(3);
    item.expiry_ns = expiry_ns;
    item.vanishes_ns = kNever;
    if (expiry_ns != kNever) {
      const int64_t error_ns = options_.rules.expiry_error_ns;
      item.vanishes_ns = expiry_ns - error_ns + Upto(2 * error_ns);
    }
    if (Chance(options_.versions_told)) operation.version = item.version;
  }

  void Carry(Operation& operation, Item& item, int64_t at_ns) {
    using enum OperationKind;
    operation.outcome = Outcome::kOk;
    switch (operation.kind) {
      case kGet:
      case kExists:
        if (!item.present || MayMiss(item, at_ns)) {
          operation.outcome = Outcome::kNotFound;
        } else if (operation.kind == kGet) {
          operation.read = item.value;
          if (Chance(options_.versions_told)) operation.version = item.version;
        }
        break;
      case kPut:
        Store(operation, operation.written, operation.expiry_ns, item);
        break;
      case kPutIfAbsent:
        if (item.present) {
          operation.outcome = Outcome::kConditionFailed;
        } else {
          Store(operation, operation.written, operation.expiry_ns, item);
        }
        break;
      case kPutIfPresent:
      case kPutIfVersion:
        if (!item.present ||
            (operation.kind == kPutIfVersion && operation.compare_version != item.version)) {
          operation.outcome = Outcome::kConditionFailed;
        } else {
          Store(operation, operation.written, operation.expiry_ns, item);
        }
        break;
      case kDelete:
      case kDeleteIfVersion:
        if (!item.present) {
          operation.outcome = Outcome::kNotFound;
        } else if (operation.kind == kDeleteIfVersion &&
                   operation.compare_version != item.version) {
          operation.outcome = Outcome::kConditionFailed;
        } else {
          item.present = false;
        }
        break;
      case kIncrement:
        CarryIncrement(operation, item);
        break;
      case kAppend:
      case kPrepend:
        CarryJoin(operation, item);
        break;
      case kTouch:
        if (!item.present) {
          operation.outcome = Outcome::kNotFound;
        } else {
          Store(operation, item.value, operation.expiry_ns, item);
        }
        break;
      case kLost:
        item.present = false;
        break;
    }
    Vanish(item, at_ns);
  }

  void CarryIncrement(Operation& operation, Item& item) {
    if (item.present && item.value.kind != Value::Kind::kNumber) {
      operation.outcome = Outcome::kNotNumber;
      return;
    }
    const int64_t before = item.present ? static_cast<int64_t>(item.value.word) : 0;
    operation.read = Number(before + operation.delta);
    Store(operation, operation.read, item.present ? item.expiry_ns : kNever, item);
  }

  void CarryJoin(Operation& operation, Item& item) {
    if (!item.present) return Store(operation, operation.written, kNever, item);
    const Value joined = operation.kind == OperationKind::kAppend
                             ? Appended(item.value, operation.written)
                             : Prepended(operation.written, item.value);
    Store(operation, joined, item.expiry_ns, item);
  }

  Random& random_;
  const RandomHistoryOptions& options_;
  std::vector<Item> items_;
  uint64_t values_ = 0;
  uint64_t versions_ = 0;
};

}  // namespace

std::vector<Operation> MakeRandomHistory(Random& random, const RandomHistoryOptions& options) {
  return Simulation(random, options).Run();
}

}  // namespace kvd::test
