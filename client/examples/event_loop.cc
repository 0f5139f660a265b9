// One thread, one epoll: operations of kvd are under way while the loop serves whatever else it
// has; here lines of standard input, "KEY VALUE" each. Every line is stored and read back.
//
//   printf 'a 1\nb 2\n' | bazel run //client/examples:event_loop -- shm:/run/kvd/kvd.sock
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <utility>

#include "client/kv_client.h"

namespace {

// Callbacks are called by Poll, on this thread. They may start more, and must not block.
void Store(kvd::Client& client, const std::string& key, const std::string& value) {
  kvd::Async stored;
  stored.done = [&client, key](kvd::Completion& put) {
    if (!put.status.ok()) {
      std::cout << key << ": " << put.status.message() << "\n";
      return;
    }
    kvd::Async read;
    read.done = [key](kvd::Completion& get) {
      std::cout << key << " = " << (get.status.ok() ? get.value : get.status.message()) << "\n";
    };
    client.StartGet(key, std::move(read));
  };
  client.StartPut(key, value, std::move(stored));
}

bool Watch(int epoll, int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Takes what is there of standard input; false at its end.
bool ReadLines(kvd::Client& client, std::string& rest) {
  std::array<char, 4096> bytes;
  const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) return false;
  rest.append(bytes.data(), static_cast<size_t>(count));
  for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n')) {
    const size_t space = std::min(rest.find(' '), end);
    Store(client, rest.substr(0, space),
          rest.substr(std::min(space + 1, end), end - std::min(space + 1, end)));
    rest.erase(0, end + 1);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const auto connected = kvd::Client::Connect(argc > 1 ? argv[1] : "");
  if (!connected.ok()) {
    std::cerr << "connect: " << connected.status().message() << "\n";
    return 1;
  }
  kvd::Client& client = **connected;
  const absl::StatusOr<int> kvd_fd = client.EventFd();
  if (!kvd_fd.ok()) {
    std::cerr << "events: " << kvd_fd.status().message() << "\n";
    return 1;
  }
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (!Watch(epoll, *kvd_fd) || !Watch(epoll, STDIN_FILENO)) {
    std::cerr << "cannot wait for standard input: epoll takes a pipe or a terminal, no file\n";
    return 1;
  }

  std::string rest;
  bool reading = true;
  while (reading || client.outstanding() > 0) {
    client.Poll({});  // no room for completions: all of ours have callbacks
    if (client.outstanding() == 0 && !reading) break;
    // True: what happens from now on makes the descriptor readable. False: something has happened
    // already.
    const int timeout_ms = client.PrepareToSleep() ? -1 : 0;
    std::array<epoll_event, 2> events;
    const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<size_t>(i)].data.fd != STDIN_FILENO) continue;  // the client's: Poll
      reading = ReadLines(client, rest);
      if (!reading) epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
    }
  }
  close(epoll);
  return 0;
}
