// A file that takes nothing, takes half a line or takes its time holds up nobody but the writer,
// and what is missing is said.
#include "common/base/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Lines = std::vector<std::string>;

// A pipe that has no room left.
class FullPipe {
 public:
  explicit FullPipe(int flags) {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    from_.Reset(ends[0]);
    to_.Reset(ends[1]);
    const std::string filler(4096, 'x');
    while (write(to_.get(), filler.data(), filler.size()) > 0) filled_ += filler.size();
    REQUIRE(fcntl(to_.get(), F_SETFL, flags) == 0);
  }

  UniqueFd TakeWriteEnd() { return std::move(to_); }

  // What comes after the filler, as soon as `count` lines of it are there.
  Lines Read(size_t count) {
    std::string text;
    for (std::string piece(4096, 0);;) {
      Lines lines;
      std::istringstream from(text.size() < filled_ ? "" : text.substr(filled_));
      for (std::string line; std::getline(from, line);) lines.push_back(line);
      if (lines.size() >= count && text.back() == '\n') return lines;
      pollfd wait{from_.get(), POLLIN, 0};
      REQUIRE(poll(&wait, 1, -1) == 1);
      const ssize_t got = read(from_.get(), piece.data(), piece.size());
      REQUIRE(got > 0);
      text.append(piece, 0, static_cast<size_t>(got));
    }
  }

 private:
  UniqueFd from_;
  UniqueFd to_;
  size_t filled_ = 0;
};

class Log {
 public:
  LineWriter::Options Options() {
    LineWriter::Options options;
    options.name = "it";
    options.lost_line = [](uint64_t lines) { return "lost " + std::to_string(lines); };
    options.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
    return options;
  }
  Lines lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  Lines lines_;
};

Lines LinesOf(const std::string& path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

UniqueFd Append(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
}

// The most bytes that a file may get from this process, as if its disk were full then.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("Line writer: a pipe that nobody reads holds up no Add; what finds no room is counted") {
  FullPipe pipe(O_NONBLOCK);
  Log log;
  LineWriter::Options options = log.Options();
  options.queue_bytes_max = 3 * sizeof("line 0");
  LineWriter writer(pipe.TakeWriteEnd(), options);
  for (int i = 0; i < 10; ++i) writer.Add("line " + std::to_string(i));
  CHECK(writer.lost() == 7);
  CHECK(log.lines() == Lines{"it loses lines: its reader does not keep up, or its disk"});
  // The reader comes back: what was queued, and how much is missing behind it.
  CHECK(pipe.Read(4) == Lines{"line 0", "line 1", "line 2", "lost 7"});
  writer.Add("after");
  REQUIRE(writer.Flush());
  CHECK(writer.lost() == 7);
  CHECK(log.lines().back() == "it goes on; lines lost: 7");
  CHECK(log.lines().size() == 2);
}

TEST_CASE("Line writer: the end does not wait for a pipe that nobody reads, blocking or not") {
  for (const int flags : {0, O_NONBLOCK}) {
    FullPipe pipe(flags);
    Log log;
    {
      LineWriter::Options options = log.Options();
      options.end_wait_ms = 20;
      LineWriter writer(pipe.TakeWriteEnd(), options);
      writer.Add("a");
      writer.Add("b");
      CHECK_FALSE(writer.Flush());
    }
    CHECK(log.lines() == Lines{"it ends; lines lost: 2"});
  }
}

TEST_CASE("Line writer: a pipe that nobody reads can be replaced, and loses nothing thereby") {
  FullPipe pipe(O_NONBLOCK);
  const TempDir dir;
  Log log;
  LineWriter writer(pipe.TakeWriteEnd(), log.Options());
  writer.Add("a");
  writer.Add("b");
  writer.Replace(Append(dir.Join("one")));
  writer.Add("c");
  REQUIRE(writer.Flush());
  CHECK(LinesOf(dir.Join("one")) == Lines{"a", "b", "c"});
  writer.Replace(Append(dir.Join("two")));
  writer.Add("d");
  REQUIRE(writer.Flush());
  CHECK(LinesOf(dir.Join("one")).size() == 3);
  CHECK(LinesOf(dir.Join("two")) == Lines{"d"});
  CHECK(log.lines().empty());
}

TEST_CASE("Line writer: a write that does not come back keeps one file waiting, the last") {
  FullPipe pipe(0);
  const TempDir dir;
  Log log;
  LineWriter writer(pipe.TakeWriteEnd(), log.Options());
  writer.Add("a");
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  writer.Replace(Append(dir.Join("0")));
  const auto before = descriptors();
  for (const char* name : {"1", "2", "3"}) writer.Replace(Append(dir.Join(name)));
  CHECK(descriptors() == before);
  writer.Add("b");
  CHECK(pipe.Read(1) == Lines{"a"});
  REQUIRE(writer.Flush());
  CHECK(LinesOf(dir.Join("3")) == Lines{"b"});
}

TEST_CASE("Line writer: a disk that is full leaves no half line, and is said once") {
  const TempDir dir;
  const std::string path = dir.Join("file");
  Log log;
  LineWriter writer(Append(path), log.Options());
  {
    const FileLimit limit(10);
    for (const char* line : {"line 0", "line 1", "line 2"}) writer.Add(line);
    REQUIRE(writer.Flush());
  }
  CHECK(LinesOf(path) == Lines{"line 0"});
  CHECK(writer.lost() == 2);
  REQUIRE(log.lines().size() == 1);
  CHECK_THAT(log.lines()[0], Catch::Contains("it loses lines: File too large"));
  writer.Add("line 3");
  writer.Add("line 4");
  REQUIRE(writer.Flush());
  CHECK(LinesOf(path) == Lines{"line 0", "lost 2", "line 3", "line 4"});
  CHECK(log.lines().back() == "it goes on; lines lost: 2");
  CHECK(writer.lost() == 2);
}

TEST_CASE("Line writer: what is written by the end says how much is missing") {
  const TempDir dir;
  Log log;
  {
    LineWriter writer(Append("/dev/full"), log.Options());
    writer.Add("a");
    REQUIRE(writer.Flush());
    writer.Replace(Append(dir.Join("file")));
  }
  CHECK(LinesOf(dir.Join("file")) == Lines{"lost 1"});
}

}  // namespace kvd::test
