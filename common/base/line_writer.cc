#include "common/base/line_writer.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kvd {
namespace {

using Time = std::chrono::steady_clock;

constexpr std::chrono::seconds kTick{1};

// A line, or a file that follows the one before.
struct Entry {
  std::string line;  // with its end; empty: none
  uint64_t lost_before = 0;
  std::optional<UniqueFd> file;
};

enum class Outcome { kWritten, kFailed, kReplaced, kAbandoned };

}  // namespace

struct LineWriter::State {
  State(UniqueFd to, Options given) : options(std::move(given)), file(std::move(to)) {}

  void Add(std::string line);
  void Run();
  bool RunOnce();
  bool WriteEntry(const Entry& entry);
  Outcome WriteWhole(std::string_view text);
  Outcome WaitUntilWritable();
  void Cut(size_t written);
  void NoteLoss(const std::string& cause);
  void NoteRecovery();
  void Call(const std::function<void()>& callback);
  void Log(const std::string& text) const {
    if (options.log) options.log(absl::StrCat(options.name, " ", text));
  }
  int descriptor() const { return file.valid() ? file.get() : STDERR_FILENO; }

  const Options options;
  const UniqueFd doorbell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  mutable std::mutex mutex;
  std::condition_variable changed;
  // Guarded by mutex.
  std::deque<Entry> queue;
  size_t queued_bytes = 0;  // with the line that is being written
  uint64_t added = 0;       // entries, of which
  uint64_t settled = 0;     // are written, lost, or taken up
  uint64_t waiting = 0;     // lines, with the one that is being written
  uint64_t gap = 0;         // lines that found no room since the last one that did
  uint64_t lost = 0;
  uint64_t lost_lately = 0;  // since lines began to be lost
  bool losing = false;
  bool stopping = false;
  bool done = false;       // the thread is over
  bool abandoned = false;  // nobody waits for the thread any more
  uint32_t callbacks = 0;  // that run

  // The thread's own.
  UniqueFd file;
  uint64_t unreported = 0;  // lost, and the file does not say so yet
  bool torn = false;        // the file ends within a line
  Time::time_point ticked = Time::now();
};

void LineWriter::State::Add(std::string line) {
  line += '\n';
  {
    const std::lock_guard lock(mutex);
    const bool fits = !stopping && queued_bytes + line.size() <= options.queue_bytes_max;
    if (fits) {
      queued_bytes += line.size();
      ++added;
      ++waiting;
      queue.push_back({std::move(line), std::exchange(gap, 0), std::nullopt});
      changed.notify_all();
      return;
    }
    ++gap;
  }
  NoteLoss("its reader does not keep up, or its disk");
}

// What is called may be gone once the thread is abandoned.
void LineWriter::State::Call(const std::function<void()>& callback) {
  {
    const std::lock_guard lock(mutex);
    if (abandoned) return;
    ++callbacks;
  }
  callback();
  const std::lock_guard lock(mutex);
  --callbacks;
  changed.notify_all();
}

void LineWriter::State::NoteLoss(const std::string& cause) {
  {
    const std::lock_guard lock(mutex);
    ++lost;
    ++lost_lately;
    if (std::exchange(losing, true)) return;
  }
  Call([&] { Log(absl::StrCat("loses lines: ", cause)); });
}

// Once nothing is missing any more of what is to be written.
void LineWriter::State::NoteRecovery() {
  uint64_t lines = 0;
  {
    const std::lock_guard lock(mutex);
    if (!losing || !queue.empty() || gap != 0) return;
    losing = false;
    lines = std::exchange(lost_lately, 0);
  }
  Call([&] { Log(absl::StrCat("goes on; lines lost: ", lines)); });
}

void LineWriter::State::Run() {
  while (RunOnce()) {
  }
  const std::lock_guard lock(mutex);
  done = true;
  changed.notify_all();
}

// False: it is over.
bool LineWriter::State::RunOnce() {
  if (options.tick && Time::now() - ticked >= kTick) {
    ticked = Time::now();
    Call(options.tick);
  }
  Entry entry;
  {
    std::unique_lock lock(mutex);
    const auto something = [&] { return !queue.empty() || gap != 0 || stopping || abandoned; };
    if (!options.tick) {
      changed.wait(lock, something);
    } else if (!changed.wait_until(lock, ticked + kTick, something)) {
      return true;
    }
    if (abandoned) return false;
    if (!queue.empty()) {
      entry = std::move(queue.front());
      queue.pop_front();
    } else if (gap != 0) {
      entry.lost_before = std::exchange(gap, 0);
      ++added;
    } else {
      lock.unlock();
      // The last chance to say so.
      if (unreported != 0) WriteEntry({});
      return false;
    }
  }
  if (entry.file.has_value()) {
    file = *std::move(entry.file);
    torn = false;
  } else if (!WriteEntry(entry)) {
    return false;
  }
  {
    const std::lock_guard lock(mutex);
    queued_bytes -= entry.line.size();
    waiting -= entry.line.empty() ? 0 : 1;
    ++settled;
    changed.notify_all();
  }
  return true;
}

// False: nobody waits for it any more.
bool LineWriter::State::WriteEntry(const Entry& entry) {
  unreported += entry.lost_before;
  for (;;) {
    std::string text;
    if (torn) text += '\n';
    if (unreported != 0 && options.lost_line)
      absl::StrAppend(&text, options.lost_line(unreported), "\n");
    text += entry.line;
    switch (WriteWhole(text)) {
      case Outcome::kWritten:
        torn = false;
        unreported = 0;
        NoteRecovery();
        return true;
      case Outcome::kFailed: {
        const int error = errno;
        if (entry.line.empty()) return true;
        ++unreported;
        NoteLoss(absl::StrCat(std::generic_category().message(error), " (errno ", error, ")"));
        return true;
      }
      case Outcome::kReplaced:
        continue;
      case Outcome::kAbandoned:
        return false;
    }
  }
}

// In one piece where the file takes it so. kFailed: errno says why, and nothing of it is in the
// file, or it is torn.
Outcome LineWriter::State::WriteWhole(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t written = write(descriptor(), text.data() + at, text.size() - at);
    if (written > 0) {
      at += static_cast<size_t>(written);
    } else if (written < 0 && errno == EAGAIN) {
      if (const Outcome waited = WaitUntilWritable(); waited != Outcome::kWritten) return waited;
    } else if (written == 0 || errno != EINTR) {
      const int error = written == 0 ? EIO : errno;
      Cut(at);
      errno = error;
      return Outcome::kFailed;
    }
  }
  return Outcome::kWritten;
}

// kWritten: it may be tried again.
Outcome LineWriter::State::WaitUntilWritable() {
  pollfd waits[] = {{descriptor(), POLLOUT, 0}, {doorbell.get(), POLLIN, 0}};
  poll(waits, 2, -1);
  const std::lock_guard lock(mutex);
  if (abandoned) return Outcome::kAbandoned;
  if (waits[0].revents != 0) return Outcome::kWritten;
  uint64_t rings = 0;
  [[maybe_unused]] const ssize_t taken = read(doorbell.get(), &rings, sizeof(rings));
  // The last one is where everything is to go that this file does not take.
  const auto newest = std::find_if(queue.rbegin(), queue.rend(),
                                   [](const Entry& entry) { return entry.file.has_value(); });
  if (newest == queue.rend()) return Outcome::kWritten;
  file = *std::move(newest->file);
  torn = false;
  settled += static_cast<uint64_t>(
      std::erase_if(queue, [](const Entry& entry) { return entry.file.has_value(); }));
  return Outcome::kReplaced;
}

// The part of a line that the file has taken is taken back, or ended by the next line. Standard
// error is not cut: others write to it, too.
void LineWriter::State::Cut(size_t written) {
  if (written == 0) return;
  torn = true;
  struct stat facts {};
  if (!file.valid() || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
  const off_t end = lseek(file.get(), 0, SEEK_CUR);
  if (end < 0 || end != facts.st_size) return;  // somebody else has appended meanwhile
  torn = ftruncate(file.get(), end - static_cast<off_t>(written)) != 0;
}

LineWriter::LineWriter(UniqueFd file, Options options)
    : state_(std::make_shared<State>(std::move(file), std::move(options))),
      thread_([state = state_] { state->Run(); }) {
  pthread_setname_np(thread_.native_handle(), state_->options.thread_name);
}

LineWriter::~LineWriter() {
  uint64_t left = 0;
  bool done = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
    done = state_->changed.wait_for(lock, std::chrono::milliseconds(state_->options.end_wait_ms),
                                    [this] { return state_->done; });
    if (!done) {
      state_->abandoned = true;
      state_->changed.notify_all();
      eventfd_write(state_->doorbell.get(), 1);
      state_->changed.wait(lock, [this] { return state_->callbacks == 0; });
      left = state_->waiting;
      state_->lost += left;
    }
    left += state_->lost_lately;
  }
  if (done) {
    thread_.join();
  } else {
    thread_.detach();  // within a write that may never come back
  }
  if (left != 0) state_->Log(absl::StrCat("ends; lines lost: ", left));
}

void LineWriter::Add(std::string line) { state_->Add(std::move(line)); }

void LineWriter::Replace(UniqueFd file) {
  const std::lock_guard lock(state_->mutex);
  std::deque<Entry>& queue = state_->queue;
  if (!queue.empty() && queue.back().file.has_value()) {
    // However often this happens while a write does not come back, one descriptor waits.
    queue.back().file = std::move(file);
  } else {
    ++state_->added;
    queue.push_back({{}, 0, std::move(file)});
  }
  state_->changed.notify_all();
  eventfd_write(state_->doorbell.get(), 1);
}

bool LineWriter::Flush() {
  std::unique_lock lock(state_->mutex);
  const uint64_t until = state_->added;
  return state_->changed.wait_for(lock, std::chrono::milliseconds(state_->options.end_wait_ms),
                                  [&] { return state_->settled >= until; });
}

uint64_t LineWriter::lost() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lost;
}

}  // namespace kvd
