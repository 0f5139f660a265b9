#include "client/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::cli {
namespace {

namespace fs = std::filesystem;

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t EntriesOf(const std::string& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), {}));
}

std::unique_ptr<OutputFile> Create(const std::string& path) {
  auto file = OutputFile::Create(path);
  KVD_REQUIRE_OK(file);
  return *std::move(file);
}

TEST_CASE("OutputFile: takes its place on Commit, not before, and leaves nothing beside it") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("out");
  std::ofstream(path) << "old";
  {
    const auto file = Create(path);
    file->sink().Write("new");
    file->sink().Flush();
    CHECK(Contents(path) == "old");
  }
  CHECK(Contents(path) == "old");
  CHECK(EntriesOf(directory.path()) == 1);
  const auto file = Create(path);
  file->sink().Write("new");
  KVD_REQUIRE_OK(file->Commit());
  CHECK(Contents(path) == "new");
  CHECK(EntriesOf(directory.path()) == 1);
}

TEST_CASE("OutputFile: a new file has the mode that umask leaves, an old one keeps its own") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("out");
  const mode_t before = ::umask(027);
  KVD_REQUIRE_OK(Create(path)->Commit());
  ::umask(before);
  struct stat about = {};
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0640);
  REQUIRE(::chmod(path.c_str(), 0604) == 0);
  KVD_REQUIRE_OK(Create(path)->Commit());
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0604);
}

TEST_CASE("OutputFile: a symbolic link stays one") {
  const kvd::test::TempDir directory;
  std::ofstream(directory.Join("real")) << "old";
  fs::create_symlink("real", directory.Join("link"));
  const auto file = Create(directory.Join("link"));
  file->sink().Write("new");
  KVD_REQUIRE_OK(file->Commit());
  CHECK(fs::is_symlink(directory.Join("link")));
  CHECK(Contents(directory.Join("real")) == "new");
}

TEST_CASE("OutputFile: what is no regular file is written directly") {
  KVD_REQUIRE_OK(Create("/dev/null")->Commit());
  const auto full = Create("/dev/full");
  full->sink().Write("x");
  const absl::Status status = full->Commit();
  KVD_REQUIRE_CODE(status, kResourceExhausted);
  CHECK(kvd::test::MessageOf(status) ==
        "cannot write /dev/full: No space left on device (errno 28)");
}

TEST_CASE("OutputFile: a place where nothing can be created is named") {
  const auto file = OutputFile::Create("/no/such/place");
  KVD_REQUIRE_CODE(file, kNotFound);
  CHECK(kvd::test::MessageOf(file) ==
        "cannot create a file beside /no/such/place: No such file or directory (errno 2)");
}

}  // namespace
}  // namespace kvd::cli
