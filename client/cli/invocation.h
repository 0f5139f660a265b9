// One command with its arguments, where it runs and how it reports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/console.h"
#include "client/cli/failure.h"
#include "client/cli/flags.h"
#include "client/cli/jsonl_codec.h"
#include "client/cli/session.h"
#include "client/cli/store.h"

namespace kvd::cli {

enum class OutputFormat { kSimple, kJson, kTable };

class Invocation {
 public:
  // `program` begins each line about a failure. All must outlive this object.
  Invocation(const Command& command, const std::vector<std::string>& arguments,
             const FlagValues& flags, Console& console, Session& session, std::string_view program)
      : command_(command),
        arguments_(arguments),
        flags_(flags),
        console_(console),
        session_(session),
        program_(program) {}

  const Command& command() const { return command_; }
  const std::vector<std::string>& arguments() const { return arguments_; }
  const FlagValues& flags() const { return flags_; }
  Console& console() { return console_; }

  OutputFormat format() const;
  bool hex() const { return flags_.Switch("hex"); }
  ByteText byte_text() const { return hex() ? ByteText::kHex : ByteText::kText; }

  // The server of this run. Null: it could not be reached, which has been reported, and
  // connect_failure() is what to return.
  // `credits`: as in ConnectOptions, of a connection that is made now.
  KeyValueStore* Store(uint32_t credits = 0);
  // The same for another server than --server's, with nothing reported.
  // `location_cache_entries`: likewise.
  absl::StatusOr<KeyValueStore*> TryStore(const std::string& target, uint32_t credits = 0,
                                          uint32_t location_cache_entries = 0);
  // Gives it up if it is one for administration; the next call of Store connects anew.
  void EndAdministration() { session_.EndAdministration(); }
  ExitCode connect_failure() const { return connect_failure_; }

  // An argument as bytes: with --hex, what its digits stand for. False: they are none, which has
  // been reported; return kUsage.
  bool BytesOfArgument(std::string_view argument, std::string& bytes);
  // All arguments from `first` on.
  bool BytesOfArguments(size_t first, std::vector<std::string>& bytes);

  // "kvcli: COMMAND SUBJECT: ..." on stderr, after what was printed so far; returns the failure's
  // code. `subject` is a key or a file, shown quoted where it needs to be; may be empty.
  ExitCode Fail(std::string_view subject, const Failure& failure);
  // The same for an operation of the store, with the advice of this command. Of keys that were not
  // found only the first brings advice.
  ExitCode FailOfStore(std::string_view subject, const absl::Status& status);
  // A line that is no failure: "kvcli: COMMAND SUBJECT: text".
  void Note(std::string_view subject, std::string_view text);

 private:
  std::string Asked(std::string_view subject) const;

  const Command& command_;
  const std::vector<std::string>& arguments_;
  const FlagValues& flags_;
  Console& console_;
  Session& session_;
  const std::string_view program_;
  ExitCode connect_failure_ = ExitCode::kDone;
  bool advised_of_missing_keys_ = false;
};

}  // namespace kvd::cli
