// One run of kvcli within the test: strings for its streams, a fake server behind it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/application.h"
#include "client/cli/byte_stream.h"
#include "client/cli/line_editor.h"
#include "tests/support/fake_clock.h"
#include "tests/unit/client/cli/fake_store.h"

namespace kvd::cli::test {

class StringSource : public ByteSource {
 public:
  // Hands out at most `piece_bytes` at a time, and `error` instead of the end.
  explicit StringSource(std::string bytes, size_t piece_bytes = SIZE_MAX,
                        absl::Status error = absl::OkStatus())
      : bytes_(std::move(bytes)), piece_bytes_(piece_bytes), error_(std::move(error)) {}

  absl::StatusOr<size_t> Read(char* into, size_t size) override {
    const size_t count = bytes_.copy(into, std::min(size, piece_bytes_), position_);
    position_ += count;
    if (count == 0 && !error_.ok()) return error_;
    return count;
  }

  size_t taken() const { return position_; }

 private:
  const std::string bytes_;
  const size_t piece_bytes_;
  const absl::Status error_;
  size_t position_ = 0;
};

// Fails with `failing_errno`, once it holds more than `bytes_max`.
class StringSink : public ByteSink {
 public:
  void Write(std::string_view bytes) override {
    if (!ok()) return;
    if (text.size() + bytes.size() > bytes_max) {
      error_number_ = failing_errno;
    } else {
      text += bytes;
    }
  }
  void Flush() override {}

  std::string text;
  size_t bytes_max = SIZE_MAX;
  int failing_errno = 0;
};

// Lines that a test has typed beforehand.
class ScriptedEditor : public LineEditor {
 public:
  struct Step {
    Outcome outcome = Outcome::kLine;
    std::string line = {};
  };
  struct Record {
    std::vector<std::string> prompts;
    std::vector<std::string> remembered;
    std::string history_path;
  };

  ScriptedEditor(std::vector<Step> steps, Record& record)
      : steps_(std::move(steps)), record_(record) {}

  Outcome ReadLine(const std::string& prompt, std::string& line) override {
    record_.prompts.push_back(prompt);
    if (next_ == steps_.size()) return Outcome::kEnd;
    line = steps_[next_].line;
    return steps_[next_++].outcome;
  }
  void Remember(const std::string& line) override { record_.remembered.push_back(line); }

 private:
  const std::vector<Step> steps_;
  Record& record_;
  size_t next_ = 0;
};

struct CliResult {
  int exit = -1;
  std::string out;
  std::string err;
};

struct CliOptions {
  std::string in = {};
  size_t* in_taken = nullptr;  // set to how many bytes of it were read
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;
  std::map<std::string, std::string> environment = {};
  std::function<bool()> interrupted = [] { return false; };
  size_t out_bytes_max = SIZE_MAX;
  int out_errno = 0;
  std::vector<ScriptedEditor::Step> typed = {};
  ScriptedEditor::Record* record = nullptr;
  // What a pause moves on; null: a clock of the run's own, which nobody sees.
  kvd::test::FakeClock* clock = nullptr;
  // Called in each pause, which then takes no time but the clock's.
  std::function<void()> on_pause = [] {};
};

inline CliResult RunCli(FakeServer& server, const std::vector<std::string>& arguments,
                        const CliOptions& options = {}) {
  StringSource in(options.in);
  StringSink out;
  out.bytes_max = options.out_bytes_max;
  out.failing_errno = options.out_errno;
  StringSink err;
  kvd::test::FakeClock own_clock;
  kvd::test::FakeClock& clock = options.clock != nullptr ? *options.clock : own_clock;
  Console console = {
      .in = in,
      .out = out,
      .err = err,
      .in_is_terminal = options.in_is_terminal,
      .out_is_terminal = options.out_is_terminal,
      .err_is_terminal = options.err_is_terminal,
      .colour = options.colour,
      .clock = clock,
      .interrupted = options.interrupted,
      .environment =
          [&options](const char* name) {
            const auto found = options.environment.find(name);
            return found == options.environment.end() ? nullptr : found->second.c_str();
          },
      .pause =
          [&](std::chrono::nanoseconds time) {
            clock.AdvanceNs(time.count());
            options.on_pause();
            return !options.interrupted();
          },
  };
  ScriptedEditor::Record unused;
  ScriptedEditor::Record& record = options.record != nullptr ? *options.record : unused;
  Application application(console, ConnectorTo(server), [&](const std::string& history_path) {
    record.history_path = history_path;
    return std::make_unique<ScriptedEditor>(options.typed, record);
  });
  CliResult result;
  result.exit = static_cast<int>(application.Run(arguments));
  if (options.in_taken != nullptr) *options.in_taken = in.taken();
  result.out = out.text;
  result.err = err.text;
  return result;
}

}  // namespace kvd::cli::test
