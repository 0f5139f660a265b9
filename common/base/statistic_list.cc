#include "common/base/statistic_list.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd {

std::string Statistic::MetricName() const {
  if (!metric.name.empty()) return std::string(metric.name);
  return absl::StrCat("kvd_", ToAbsl(name), kind == StatisticKind::kCounter ? "_total" : "");
}

const Statistic* StatisticList::Find(std::string_view name) const {
  const auto row = std::find_if(rows_.begin(), rows_.end(),
                                [name](const Statistic& s) { return s.name == name; });
  return row == rows_.end() ? nullptr : &*row;
}

uint64_t StatisticList::NumberOf(std::string_view name) const {
  const Statistic* row = Find(name);
  return row == nullptr ? 0 : row->number;
}

std::string StatisticList::Lines() const {
  std::string text;
  for (const Statistic& row : rows_) {
    if (!row.name.empty()) absl::StrAppend(&text, ToAbsl(row.name), " ", row.ValueText(), "\n");
  }
  return text;
}

}  // namespace kvd
