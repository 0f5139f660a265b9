#include "client/cli/doctor_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace kvd::cli {
namespace {

using verbs::CheckOutcome;
using verbs::CheckResult;

std::string Padded(std::string text, size_t width) {
  text.append(width - std::min(width, DisplayWidth(text)), ' ');
  return text;
}

}  // namespace

void DoctorReport::Add(CheckResult result, ExitCode exit_if_failed) {
  if (result.outcome == CheckOutcome::kFailed && exit == ExitCode::kDone) exit = exit_if_failed;
  results.push_back(std::move(result));
}

void DoctorReport::AddOk(std::string check, std::string found) {
  results.push_back({std::move(check), CheckOutcome::kOk, std::move(found), ""});
}

void DoctorReport::AddFailed(std::string check, const Failure& failure) {
  const size_t end = std::min(failure.text.rfind("; "), failure.text.size());
  const std::string remedy =
      end < failure.text.size() ? failure.text.substr(end + 2) : std::string("see 'kvcli help'");
  Add({std::move(check), CheckOutcome::kFailed, failure.text.substr(0, end), remedy}, failure.code);
}

size_t DoctorReport::failed() const {
  return static_cast<size_t>(std::count_if(
      results.begin(), results.end(),
      [](const CheckResult& result) { return result.outcome == CheckOutcome::kFailed; }));
}

std::string FormatReport(OutputFormat format, const DoctorReport& report) {
  if (format == OutputFormat::kJson) {
    nlohmann::ordered_json checks = nlohmann::ordered_json::array();
    for (const CheckResult& result : report.results) {
      // OneLine makes valid UTF-8 of whatever a server sent.
      checks.push_back({{"check", OneLine(result.check)},
                        {"outcome", NameOf(result.outcome)},
                        {"found", OneLine(result.found)},
                        {"remedy", OneLine(result.remedy)}});
    }
    const nlohmann::ordered_json object = {{"failed", report.failed()},
                                           {"checks", std::move(checks)}};
    return object.dump() + "\n";
  }
  std::vector<std::vector<std::string>> rows;
  size_t width = 0;
  for (const CheckResult& result : report.results) {
    rows.push_back({std::string(NameOf(result.outcome)), OneLine(result.check),
                    OneLine(result.found), OneLine(result.remedy)});
    width = std::max(width, DisplayWidth(rows.back()[1]));
  }
  if (format == OutputFormat::kTable) {
    return FormatTable({"OUTCOME", "CHECK", "FOUND", "WHAT TO DO"}, rows);
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppend(&text, Padded(row[0], 9), Padded(row[1], width + 2), row[2],
                    row[3].empty() ? "" : "; ", row[3], "\n");
  }
  return text;
}

}  // namespace kvd::cli
