#include "tests/support/temp_dir.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace kvd::test {

TempDir::TempDir() : path_("/tmp/kvd.XXXXXX") {
  // Not under TEST_TMPDIR: Bazel's is too long for a Unix socket.
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror("mkdtemp /tmp/kvd.XXXXXX");
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;  // a leftover directory is no reason to fail a test
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Join(std::string_view name) const { return path_ + "/" + std::string(name); }

}  // namespace kvd::test
