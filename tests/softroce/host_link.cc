#include "tests/softroce/host_link.h"

#include <fcntl.h>
#include <sys/reboot.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace kvd::softroce {
namespace {

constexpr int kPollInterval_us = 1000;
constexpr int kPolls = 10'000;

constexpr std::array<const char*, 3> kPortNames = {"kvd.output", "kvd.errors", "kvd.status"};
std::array<int, 3> line_fds = {-1, -1, -1};

// The device of the port with this name, such as /dev/vport0p1; empty while there is none.
std::string FindPort(const std::string& wanted) {
  std::error_code ignored;
  for (const auto& port : std::filesystem::directory_iterator("/sys/class/virtio-ports", ignored)) {
    std::string name;
    std::ifstream(port.path() / "name") >> name;
    if (name == wanted) return "/dev/" + port.path().filename().string();
  }
  return "";
}

}  // namespace

void OpenHostLines() {
  for (size_t line = 0; line < kPortNames.size(); ++line) {
    for (int poll = 0; poll < kPolls && line_fds[line] < 0; ++poll) {
      const std::string device = FindPort(kPortNames[line]);
      if (!device.empty()) line_fds[line] = open(device.c_str(), O_WRONLY | O_CLOEXEC);
      if (line_fds[line] < 0) usleep(kPollInterval_us);
    }
    if (line_fds[line] < 0) Fail(std::string("no port ") + kPortNames[line]);
  }
}

void SendToHost(HostLine line, std::string_view bytes) {
  const int fd = line_fds[static_cast<size_t>(line)];
  while (fd >= 0 && !bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the host is gone; nobody is left to tell
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void Fail(const std::string& what) {
  const std::string line =
      "failed " + what + (errno != 0 ? std::string(": ") + strerror(errno) : "") + "\n";
  SendToHost(HostLine::kStatus, line);
  // Standard error is the kernel's console.
  fprintf(stderr, "init: %s", line.c_str());
  EndGuest();
}

void EndGuest() {
  // With QEMU's -no-reboot a reboot is what ends it.
  reboot(RB_AUTOBOOT);
  for (;;) pause();
}

}  // namespace kvd::softroce
