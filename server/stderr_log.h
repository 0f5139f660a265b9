// kvd's log, on its way to standard error by a thread of its own: whoever logs does not wait for
// who reads it.
#pragma once

#include <glog/logging.h>

#include <string>

#include "common/base/line_writer.h"

namespace kvd {

// While there is one, glog's lines go through it, in glog's form; lines that standard error does
// not take are counted, and the log says how many are missing. One at a time, by the main thread;
// whatever logs has ended before it goes. Its end takes a second at most.
class StderrLog final : public google::LogSink {
 public:
  StderrLog();
  ~StderrLog() override;

  // A line as it is, behind those before it.
  void Print(std::string line) { writer_.Add(std::move(line)); }

  void send(google::LogSeverity severity, const char* full_filename, const char* base_filename,
            int line, const google::LogMessageTime& time, const char* message,
            size_t message_len) override;

 private:
  LineWriter writer_;
};

}  // namespace kvd
