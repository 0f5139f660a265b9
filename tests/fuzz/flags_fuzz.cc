// Flags, a line an argument: of kvd; of each kind that kvcli and kvbench have; and lines that are
// typed at kvcli's prompt. Accepted, or refused with a reason of one line.
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/flags.h"
#include "server/kvd_options.h"
#include "tests/fuzz/fuzz.h"

namespace kvd::fuzz {
namespace {

void OneLine(const absl::Status& status) {
  if (status.ok()) return;
  Require(!status.message().empty(), "an error says what");
  Require(status.message().find('\n') == absl::string_view::npos, "in one line");
}

constexpr cli::Flag kFlags[] = {
    {"switch", 's', cli::FlagKind::kSwitch, "", "false", "h"},
    {"text", 't', cli::FlagKind::kText, "TEXT", "", "h"},
    {"choice", 'c', cli::FlagKind::kChoice, "absent|present|version:N", "", "h"},
    {"count", 'n', cli::FlagKind::kCount, "N", "0", "h"},
    {"duration", 'd', cli::FlagKind::kDuration, "TIME", "5s", "h"},
    {"bytes", 'b', cli::FlagKind::kBytes, "BYTES", "1m", "h"},
    {"ttl", 'l', cli::FlagKind::kTtl, "TIME", "", "h"},
    {"moment", 'm', cli::FlagKind::kMoment, "MOMENT", "", "h"},
};

void Commands(const std::vector<std::string>& arguments) {
  cli::FlagValues values;
  values.Declare(kFlags);
  OneLine(values.TakeArguments(arguments, {}).status());
  for (const cli::Flag& flag : kFlags) {
    if (flag.kind == cli::FlagKind::kDuration) {
      Require(values.Duration(flag.name).count() > 0, "a time is above 0");
    }
    if (flag.kind == cli::FlagKind::kBytes) Require(values.Count(flag.name) > 0, "a size too");
    if (flag.kind == cli::FlagKind::kTtl) (void)values.Ttl(flag.name);
    if (flag.kind == cli::FlagKind::kMoment) (void)values.MomentUnixUs(flag.name);
  }
}

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvd;  // NOLINT
  fuzz::Feed feed(data, size);
  const uint64_t program = feed.Below(3);
  std::vector<std::string> arguments(1);
  for (const char c : feed.RestAsText()) {
    if (c == '\0') return 0;  // no argument has one
    if (c == '\n') {
      arguments.emplace_back();
    } else {
      arguments.back() += c;
    }
  }
  if (program == 0) {
    for (const std::string& argument : arguments) {
      // Reads files of this machine.
      if (argument.find("flagfile") != std::string::npos) return 0;
    }
    fuzz::OneLine(ParseKvdOptions(arguments).status());
  } else if (program == 1) {
    fuzz::Commands(arguments);
  } else {
    for (const std::string& line : arguments) fuzz::OneLine(cli::SplitCommandLine(line).status());
  }
  return 0;
}
