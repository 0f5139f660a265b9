// plan: how much memory a number of items needs.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/kvbench/value_size.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/jsonl_codec.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "common/layout/units.h"
#include "common/transport/verbs/local_check.h"
#include "server/store/capacity.h"

namespace kvd::cli {
namespace {

using bench::ParseValueSizes;
using bench::ValueSizes;

constexpr uint64_t kItemsMax = uint64_t{1} << 40;
constexpr uint64_t kGrowthMax = 10'000;  // percent
constexpr uint64_t kKeyStepsMax = 16;
constexpr uint64_t kValueStepsMax = 200;
constexpr uint64_t kHugepageBytes = 2 * kMiB;

constexpr Flag kPlanFlags[] = {
    {"items", 'n', FlagKind::kCount, "N", "", "how many items there are to be", false},
    {"value_size", 's', FlagKind::kText, "SIZES", "",
     "of the values: 64, or 64..4096 with all sizes between equally likely, or a list with weights "
     "such as 64:70,1k..4k:30; suffixes k and m",
     false},
    {"key_size", 'k', FlagKind::kText, "SIZES", "8", "of the keys, likewise", false},
    {"growth", '\0', FlagKind::kCount, "PERCENT", "0", "so many more items than --items", false},
    {"expiring", '\0', FlagKind::kSwitch, "", "false", "the items have an expiry (--ttl)", false},
    {"pollers", '\0', FlagKind::kCount, "N", "1", "of kvd, which share the items", false},
    {"bucket_bytes", '\0', FlagKind::kChoice, "512|1024|2048|4096", "1024", "of kvd", false},
};

struct Plan {
  CapacityNeeds needs;
  Capacity capacity;
  uint64_t memlock_bytes = 0;
};

// What is asked for; or what is wrong with it.
absl::StatusOr<CapacityNeeds> NeedsOf(const FlagValues& flags) {
  const auto wrong = [](std::string text) { return absl::InvalidArgumentError(text); };
  if (!flags.IsSet("items") || !flags.IsSet("value_size")) {
    return wrong("--items=N and --value_size=SIZES are needed");
  }
  const absl::StatusOr<ValueSizes> values = ParseValueSizes(flags.Text("value_size"));
  if (!values.ok()) return wrong(absl::StrCat("--value_size=", values.status().message()));
  const absl::StatusOr<ValueSizes> keys = ParseValueSizes(flags.Text("key_size"));
  if (!keys.ok()) return wrong(absl::StrCat("--key_size=", keys.status().message()));
  if (keys->max() > kKeyBytesMax) {
    return wrong(absl::StrCat("--key_size=", keys->text(), " is too long; keys have at most ",
                              kKeyBytesMax, " bytes"));
  }
  const uint64_t items = flags.Count("items");
  const uint64_t growth = flags.Count("growth");
  const uint64_t pollers = flags.Count("pollers");
  if (items > kItemsMax)
    return wrong(absl::StrCat("--items=", items, " is more than 2^40; give less"));
  if (growth > kGrowthMax) {
    return wrong(absl::StrCat("--growth=", growth, " is too much; give at most ", kGrowthMax));
  }
  if (pollers == 0 || pollers > kShardsMax) {
    return wrong(absl::StrCat("--pollers=", pollers, ": give a number from 1 to ", kShardsMax));
  }
  CapacityNeeds needs;
  needs.items = items + items / 100 * growth + items % 100 * growth / 100;
  needs.pollers = static_cast<uint32_t>(pollers);
  needs.bucket_bytes = static_cast<uint32_t>(std::stoul(flags.Text("bucket_bytes")));
  for (const auto& [key_bytes, of_keys] : keys->Spread(kKeyStepsMax)) {
    for (const auto& [value_bytes, of_values] : values->Spread(kValueStepsMax)) {
      needs.kinds.push_back({.key_bytes = key_bytes,
                             .value_bytes = value_bytes,
                             .expires = flags.Switch("expiring"),
                             .share = of_keys * of_values});
    }
  }
  return needs;
}

using Lines = std::vector<std::pair<std::string, std::string>>;

// As programs want it.
Lines Numbers(const Plan& plan) {
  const Capacity& c = plan.capacity;
  return {{"items", absl::StrCat(plan.needs.items)},
          {"user_bytes", absl::StrFormat("%.0f", c.user_bytes)},
          {"memory_bytes", absl::StrCat(c.memory_bytes)},
          {"index_bytes", absl::StrCat(c.index_bytes)},
          {"heap_bytes", absl::StrCat(c.heap_bytes)},
          {"hugepages_2m", absl::StrCat(c.memory_bytes / kHugepageBytes)},
          {"memlock_bytes", absl::StrCat(plan.memlock_bytes)},
          {"max_value_bytes", absl::StrCat(c.largest_value_bytes)},
          {"items_in_buckets", absl::StrFormat("%.3f", c.local_share)},
          {"reads_per_get", absl::StrFormat("%.3f", c.reads_per_get)}};
}

// What kvd takes without --max_value.
constexpr uint64_t kMaxValueBytes = 64 * kMiB;

std::string MaxValueFlag(uint64_t largest_value_bytes) {
  if (largest_value_bytes <= kMaxValueBytes) return "";
  return absl::StrCat(" --max_value=", (largest_value_bytes + kMiB - 1) / kMiB, "m");
}

std::string MemoryFlag(uint64_t bytes) { return absl::StrCat("--memory=", bytes / kMiB, "m"); }

Lines Words(const Plan& plan) {
  const Capacity& c = plan.capacity;
  const std::string memory = MemoryFlag(c.memory_bytes);
  const double share = 100 * c.user_bytes / static_cast<double>(c.memory_bytes);
  Lines lines = {
      {"items",
       absl::StrCat(plan.needs.items, ", ", FormatBytes(static_cast<uint64_t>(c.user_bytes)),
                    " of keys and values")},
      {"memory",
       absl::StrFormat("%s: kvd %s%s; %.0f %% of it keys and values", FormatBytes(c.memory_bytes),
                       memory, MaxValueFlag(c.largest_value_bytes), share)},
      {"index", FormatBytes(c.index_bytes)},
      {"heap", absl::StrCat(FormatBytes(c.heap_bytes), ", items that do not lie in their bucket")},
      {"hugepages", absl::StrCat(c.memory_bytes / kHugepageBytes, " of 2 MiB: kvd-hugepages ",
                                 memory, " --apply")},
      {"memlock", absl::StrCat(FormatBytes(plan.memlock_bytes),
                               " with --listen: LimitMEMLOCK=infinity, or ulimit -l unlimited")},
      {"READs per GET",
       absl::StrFormat("%.2f over RDMA, 1 where a client remembers locations; %.0f %% of the items "
                       "lie in their bucket",
                       c.reads_per_get, 100 * c.local_share)},
      {"how sure",
       "no item refused, and at most 12 % more than is used, or 4 MiB, if lengths stay as given;"},
      {"", "give --growth=20 where values change their lengths"},
  };
  return lines;
}

std::string Text(Invocation& run, const Plan& plan) {
  switch (run.format()) {
    case OutputFormat::kSimple:
      return FormatAligned(Words(plan));
    case OutputFormat::kTable: {
      std::vector<std::vector<std::string>> rows;
      for (const auto& [name, value] : Numbers(plan)) rows.push_back({name, value});
      return FormatTable({"NAME", "VALUE"}, rows, run.console().columns);
    }
    case OutputFormat::kJson:
      break;
  }
  std::string text;
  for (const auto& [name, value] : Numbers(plan)) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", "\"", name, "\":", value);
  }
  return text + "}\n";
}

ExitCode RunPlan(Invocation& run) {
  const absl::StatusOr<CapacityNeeds> needs = NeedsOf(run.flags());
  if (!needs.ok()) return run.Fail("", UsageFailure(ToStd(needs.status().message()), "plan"));
  Plan plan{.needs = *needs, .capacity = PlanCapacity(*needs)};
  plan.memlock_bytes = plan.capacity.memory_bytes + verbs::kServerBuffersBytes;
  run.console().out.Write(Text(run, plan));
  return ExitCode::kDone;
}

}  // namespace

constinit const Command kPlanCommand = {
    .name = "plan",
    .arguments = "",
    .summary = "say how much memory a number of items needs",
    .details =
        "Calculated from the sizes that kvd's store works with; needs no server. What kvd needs\n"
        "besides --memory: rings of some 150 KB for each session, and with --evict=lru 68 bytes "
        "for\n"
        "each bucket. With less memory than this, small items still find room for a while, in\n"
        "longer chains, which cost READs.\n",
    .examples =
        "kvcli plan --items=10000000 --value_size=64\n"
        "kvcli plan --items=1000000 --key_size=16..40 --value_size=64:70,1k..4k:30 --growth=20\n"
        "kvcli plan --items=50000 --value_size=100k -w json\n",
    .flags = kPlanFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunPlan,
};

}  // namespace kvd::cli
