#include "tests/linearizability/key_history.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace kvd::test {
namespace {

bool IsJoin(const Operation& operation) {
  return operation.kind == OperationKind::kAppend || operation.kind == OperationKind::kPrepend;
}

bool ReadsBlob(const Operation& operation) {
  return operation.kind == OperationKind::kGet && operation.outcome == Outcome::kOk &&
         operation.read.kind == Value::Kind::kBlob;
}

bool WritesBlob(const Operation& operation) {
  return IsPut(operation.kind) && operation.written.kind == Value::Kind::kBlob;
}

std::string At(const Operation& operation) {
  return absl::StrCat(NameOf(operation.kind), " by client ", operation.client, " at ",
                      operation.invoked_ns, " ns");
}

using WriterOf = absl::flat_hash_map<uint64_t, Operation*>;

// What a value that was read says about the write that made it. Returns the violation, if it is
// one. `touched`: the item may have got a later version with the same value.
std::string Meet(const Operation& read, const WriterOf& writers, bool touched) {
  const auto found = writers.find(read.read.word);
  if (found == writers.end())
    return absl::StrCat(At(read), " returned a value that was never written");
  Operation& writer = *found->second;
  if (writer.invoked_ns > read.returned_ns) {
    return absl::StrCat(At(read), " returned a value from the future: of the ", At(writer));
  }
  if (writer.outcome != Outcome::kOk && writer.outcome != Outcome::kUnknown) {
    return absl::StrCat(At(read), " returned the value of a write that had no effect: ", At(writer),
                        " (", NameOf(writer.outcome), ")");
  }
  if (!touched && writer.version != 0 && read.version != 0 && writer.version != read.version) {
    return absl::StrCat(At(read), " returned version ", read.version, " with the value of version ",
                        writer.version, " of the ", At(writer));
  }
  if (writer.outcome == Outcome::kUnknown) {
    writer.returned_ns = std::min(writer.returned_ns, read.returned_ns);
    if (!touched && writer.version == 0) writer.version = read.version;
  }
  return {};
}

std::string MeetReads(std::vector<Operation>& operations,
                      std::unordered_set<uint64_t>& values_read) {
  WriterOf writers;
  for (Operation& operation : operations) {
    if (WritesBlob(operation)) writers.emplace(operation.written.word, &operation);
  }
  const bool touched = std::any_of(
      operations.begin(), operations.end(),
      [](const Operation& operation) { return operation.kind == OperationKind::kTouch; });
  for (const Operation& operation : operations) {
    if (!ReadsBlob(operation)) continue;
    std::string violation = Meet(operation, writers, touched);
    if (!violation.empty()) return violation;
    values_read.insert(operation.read.word);
  }
  for (Operation& operation : operations) {
    if (operation.outcome != Outcome::kUnknown || !WritesBlob(operation)) continue;
    if (!values_read.contains(operation.written.word)) continue;
    operation.outcome = Outcome::kOk;
    operation.returned_ns = std::min(operation.returned_ns, operation.effect_until_ns);
    if (operation.returned_ns < operation.invoked_ns) {
      return absl::StrCat("the value of a write was read that cannot have had an effect: ",
                          At(operation));
    }
  }
  return {};
}

// Writes of known version took effect in the order of their versions. No two have the same, and
// none was invoked after one of a higher version had returned.
std::string OrderByVersion(KeyHistory& history) {
  const std::vector<Operation>& required = history.required;
  for (uint32_t i = 0; i < required.size(); ++i) {
    if (MadeVersion(required[i])) history.version_order.push_back(i);
  }
  std::vector<uint32_t>& order = history.version_order;
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return required[a].version < required[b].version; });
  int64_t first_return = kNever;
  for (size_t i = order.size(); i-- > 0;) {
    const Operation& write = required[order[i]];
    if (i + 1 < order.size() && required[order[i + 1]].version == write.version) {
      return absl::StrCat("two writes got version ", write.version, ": ", At(write), " and ",
                          At(required[order[i + 1]]));
    }
    if (first_return < write.invoked_ns) {
      return absl::StrCat("versions went back: ", At(write), " got version ", write.version,
                          ", and one that had returned before a higher one");
    }
    first_return = std::min(first_return, write.returned_ns);
  }
  return {};
}

// `values_read`: what GETs returned; null if values do not name their writes.
void FindCopies(KeyHistory& history, const std::unordered_set<uint64_t>* values_read) {
  // Kind, whether nobody has read the value, the value unless so, number, version, expiry, and how
  // long it can act.
  using Matter =
      std::tuple<OperationKind, bool, Value::Kind, uint64_t, int64_t, uint64_t, int64_t, int64_t>;
  std::map<Matter, int> last;
  for (size_t i = 0; i < history.optional.size(); ++i) {
    const Operation& operation = history.optional[i];
    const bool blind = values_read != nullptr && WritesBlob(operation) &&
                       !values_read->contains(operation.written.word);
    const Matter matter{operation.kind,         blind,
                        operation.written.kind, blind ? 0 : operation.written.word,
                        operation.delta,        operation.compare_version,
                        operation.expiry_ns,    operation.effect_until_ns};
    const auto [at, fresh] = last.emplace(matter, static_cast<int>(i));
    history.same_before.push_back(fresh ? -1 : std::exchange(at->second, static_cast<int>(i)));
  }
}

}  // namespace

KeyHistory PrepareKey(std::vector<Operation> operations) {
  KeyHistory history;
  std::sort(operations.begin(), operations.end(),
            [](const Operation& a, const Operation& b) { return a.invoked_ns < b.invoked_ns; });
  for (Operation& operation : operations) {
    if (operation.outcome == Outcome::kUnknown) {
      // When a client gave up says nothing about when the server did it.
      operation.returned_ns = kNever;
      operation.version = 0;
    }
    if (operation.outcome == Outcome::kOk && operation.read.kind == Value::Kind::kCorrupt) {
      history.violation = absl::StrCat(At(operation), " returned bytes that no write has made");
      return history;
    }
  }
  const bool named = std::none_of(operations.begin(), operations.end(), IsJoin);
  std::unordered_set<uint64_t> values_read;
  if (named) history.violation = MeetReads(operations, values_read);
  if (!history.violation.empty()) return history;
  for (const Operation& operation : operations) {
    if (operation.outcome == Outcome::kFailed) continue;
    if (operation.outcome != Outcome::kUnknown) {
      history.required.push_back(operation);
    } else if (!IsRead(operation.kind)) {
      history.optional.push_back(operation);
    }
  }
  history.violation = OrderByVersion(history);
  FindCopies(history, named ? &values_read : nullptr);
  return history;
}

}  // namespace kvd::test
