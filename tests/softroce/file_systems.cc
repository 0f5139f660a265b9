#include "tests/softroce/file_systems.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/softroce/host_link.h"

namespace kvd::softroce {
namespace {

namespace fs = std::filesystem;

// As large as virtio-9p takes.
constexpr char kHostOptions[] = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";
// What the guest writes is on the host once the file is closed.
constexpr char kShareOptions[] = "trans=virtio,version=9p2000.L,msize=512000,cache=mmap";

void MakeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    errno = error.value();
    Fail("cannot make " + path);
  }
}

void MakeLink(const char* target, const char* path) {
  if (symlink(target, path) != 0) Fail("cannot make " + std::string(path));
}

void Mount(const char* source, const std::string& target, const char* type, unsigned long flags = 0,
           const char* options = nullptr) {
  MakeFolder(target);
  if (mount(source, target.c_str(), type, flags, options) != 0) {
    Fail("cannot mount " + std::string(source) + " at " + target);
  }
}

// A folder or a file.
void Bind(const std::string& source, const std::string& target) {
  std::error_code ignored;
  if (fs::is_directory(source, ignored)) return Mount(source.c_str(), target, nullptr, MS_BIND);
  std::ofstream{target};
  if (mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    Fail("cannot make visible " + target);
  }
}

void MountOverlay() {
  Mount("host", "/host", "9p", MS_RDONLY, kHostOptions);
  Mount("memory", "/memory", "tmpfs");
  MakeFolder("/memory/upper");
  MakeFolder("/memory/work");
  Mount("overlay", "/root", "overlay", 0,
        "lowerdir=/host,upperdir=/memory/upper,workdir=/memory/work");
}

// The kernel's own and fresh folders. Runs in the new root.
void MountGuestFolders() {
  MountKernelFolders();
  Mount("devpts", "/dev/pts", "devpts", 0, "mode=620,ptmxmode=666");
  Mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
  Mount("hugetlbfs", "/dev/hugepages", "hugetlbfs");
  Mount("tmpfs", "/run", "tmpfs", 0, "mode=755");
  MakeLink("/proc/self/fd", "/dev/fd");
  MakeLink("/proc/self/fd/0", "/dev/stdin");
  MakeLink("/proc/self/fd/1", "/dev/stdout");
  MakeLink("/proc/self/fd/2", "/dev/stderr");
}

// A /tmp that holds the visible entries alone.
void HideTmp(const std::vector<std::string>& visible) {
  // A second sight of the root, in which /tmp stays the host's.
  Bind("/", "/run/whole");
  Mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777");
  for (const std::string& path : visible) Bind("/run/whole" + path, path);
  umount2("/run/whole", MNT_DETACH);
  rmdir("/run/whole");
}

}  // namespace

void MountKernelFolders() {
  Mount("devtmpfs", "/dev", "devtmpfs");
  Mount("proc", "/proc", "proc");
  Mount("sysfs", "/sys", "sysfs");
}

void LoadModules() {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/modules", ignored)) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST) Fail("cannot load " + path);
    close(fd);
  }
  errno = 0;
}

void EnterHostRoot(const GuestConfig& config) {
  MountOverlay();
  if (chdir("/root") != 0 || mount(".", "/", nullptr, MS_MOVE, nullptr) != 0 || chroot(".") != 0 ||
      chdir("/") != 0) {
    Fail("cannot enter the new root");
  }
  MountGuestFolders();
  const std::string modules = config.One("modules");
  if (!modules.empty()) Bind(modules + "/lib/modules", "/lib/modules");
  HideTmp(config.All("visible"));
  int number = 0;
  for (const std::string& path : config.All("share")) {
    const std::string tag = "share" + std::to_string(number++);
    Mount(tag.c_str(), path, "9p", 0, kShareOptions);
  }
}

}  // namespace kvd::softroce
