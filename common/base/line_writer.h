// Lines on their way to a file: threads that must not wait for it put them down, one thread of its
// own writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/base/unique_fd.h"

namespace kvd {

// Thread-safe. Only the thread of its own ever waits for the file, whatever that is: a full disk, a
// pipe that nobody reads. What cannot be queued or written is counted, and otherwise lost.
class LineWriter {
 public:
  struct Options {
    // For the log: "the audit log /var/log/kvd/audit.json".
    std::string name;
    const char* thread_name = "kvd-lines";
    // Lines that wait, in bytes; beyond it further ones are lost.
    size_t queue_bytes_max = size_t{1} << 20;
    // How long the end waits for what is still queued.
    int64_t end_wait_ms = 1000;
    // What stands in the file where this many lines are missing, a line without its end.
    std::function<std::string(uint64_t lines)> lost_line;
    // When lines begin to be lost, when they are not any more, and at the end. Any thread, none of
    // them with a lock held; must not block. Empty: nobody wants to know.
    std::function<void(const std::string&)> log;
    // Called by the writer's thread about once a second, but not while the file holds it up; may
    // call Add. Empty: nothing is to be done.
    std::function<void()> tick;
  };

  // Writes to `file`; an invalid one means standard error. With O_NONBLOCK a file that takes
  // nothing can be replaced by another one; without, its write holds until it is over.
  LineWriter(UniqueFd file, Options options);
  // Gives the file a bounded time to take what is queued; the rest is counted and logged.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // `line` without its end. Blocks for nobody's I/O.
  void Add(std::string line);

  // What is added from now on goes to `file`, and so does what the one before does not take.
  void Replace(UniqueFd file);

  // Blocks until everything added so far has been written or is lost, at most for as long as the
  // end does. False: not all of it.
  bool Flush();

  // Lines that are in no file.
  uint64_t lost() const;

 private:
  // Outlives this object where a write never comes back.
  struct State;

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace kvd
