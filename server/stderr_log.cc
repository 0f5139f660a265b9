#include "server/stderr_log.h"

#include <new>

#include "absl/strings/str_cat.h"

namespace kvd {
namespace {

LineWriter::Options QueueOptions() {
  LineWriter::Options options;
  options.name = "the log";
  options.thread_name = "kvd-log";
  options.lost_line = [](uint64_t lines) {
    return absl::StrCat("kvd: standard error was not read: lines of the log lost here: ", lines);
  };
  return options;
}

}  // namespace

StderrLog::StderrLog() : writer_(UniqueFd(), QueueOptions()) {
  // glog writes by itself what ends the process, and nothing else: neither to standard error nor to
  // files.
  FLAGS_logtostderr = false;
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity)
    google::SetLogDestination(severity, "");
  google::AddLogSink(this);
}

StderrLog::~StderrLog() {
  google::RemoveLogSink(this);
  FLAGS_logtostderr = true;
}

void StderrLog::send(google::LogSeverity severity, const char* /*full_filename*/,
                     const char* base_filename, int line, const google::LogMessageTime& time,
                     const char* message, size_t message_len) try {
  if (severity == google::GLOG_FATAL) return;
  writer_.Add(ToString(severity, base_filename, line, time, message, message_len));
} catch (const std::bad_alloc&) {
  // glog calls this where nothing may be thrown.
}

}  // namespace kvd
