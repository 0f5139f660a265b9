// A directory for one test's files.
#pragma once

#include <string>
#include <string_view>

namespace kvd::test {

// Makes a fresh directory and removes it, with all that is in it, when it goes. Its path is short
// (/tmp/kvd.XXXXXX), so that a Unix socket in it stays below the 108 bytes of sun_path. Aborts the
// test program when the directory cannot be made.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  // path()/name; creates nothing.
  std::string Join(std::string_view name) const;

 private:
  std::string path_;
};

}  // namespace kvd::test
