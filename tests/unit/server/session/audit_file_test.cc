// Which files an audit log may be: what is refused says what to do, is refused by --check as by the
// start, and waits for nobody.
#include "server/session/audit_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

void CheckRefused(const std::string& path, const std::vector<std::string>& words) {
  for (const absl::Status& status : {OpenAuditFile(path).status(), CheckAuditFile(path)}) {
    CAPTURE(path, MessageOf(status));
    REQUIRE_FALSE(status.ok());
    CHECK_THAT(MessageOf(status), Catch::Contains("--audit=" + path));
    for (const std::string& word : words) CHECK_THAT(MessageOf(status), Catch::Contains(word));
  }
}

}  // namespace

TEST_CASE("Audit file: --check makes none; the start makes one for its owner alone") {
  const TempDir dir;
  const std::string path = dir.Join("audit");
  KVD_REQUIRE_OK(CheckAuditFile(path));
  CHECK(std::filesystem::is_empty(dir.path()));
  KVD_REQUIRE_OK(OpenAuditFile(path));
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 07777) == 0600);
  KVD_REQUIRE_OK(CheckAuditFile(path));
  CHECK_FALSE(OpenAuditFile("-").value().valid());
  KVD_REQUIRE_OK(CheckAuditFile("-"));
  KVD_REQUIRE_OK(OpenAuditFile("/dev/null"));
  KVD_REQUIRE_OK(CheckAuditFile("/dev/null"));
}

TEST_CASE("Audit file: what is no file, or where none can be, is refused with a remedy") {
  const TempDir dir;
  CheckRefused(dir.path(), {"is a directory; name a file in it"});
  CheckRefused(dir.Join("no/such"), {"No such file or directory", "; name a file in a directory"});
  CheckRefused("/proc/no-such", {"No such file or directory"});
  std::ofstream(dir.Join("file")) << "x";
  CheckRefused(dir.Join("file/below"), {"Not a directory"});
}

TEST_CASE("Audit file: a symbolic link is refused, and nothing is made where it leads") {
  const TempDir dir;
  const std::string path = dir.Join("audit");
  std::filesystem::create_symlink(dir.Join("elsewhere"), path);
  CheckRefused(path, {"is a symbolic link; name the file"});
  CHECK_FALSE(std::filesystem::exists(dir.Join("elsewhere")));
}

TEST_CASE("Audit file: one that others may write, or have made, is refused") {
  const TempDir dir;
  const std::string path = dir.Join("audit");
  std::ofstream(path) << "{}\n";
  for (const mode_t mode : {0620, 0602}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CheckRefused(path, {"may be written by others", "chmod go-w"});
  }
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  KVD_REQUIRE_OK(OpenAuditFile(path));
  // Only root can give a file away, and not everywhere.
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  facts.st_uid = 0;
  KVD_REQUIRE_OK(JudgeAuditFile(path, facts));
  facts.st_uid = geteuid() + 5555;
  const absl::Status theirs = JudgeAuditFile(path, facts);
  KVD_REQUIRE_CODE(theirs, kFailedPrecondition);
  CHECK_THAT(MessageOf(theirs),
             Catch::Contains("belongs to user " + std::to_string(facts.st_uid)) &&
                 Catch::Contains("chown it to user " + std::to_string(geteuid())));
}

TEST_CASE("Audit file: a FIFO is opened if somebody reads it, and waits for nobody") {
  const TempDir dir;
  const std::string path = dir.Join("fifo");
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  const absl::Status nobody = OpenAuditFile(path).status();
  KVD_REQUIRE_CODE(nobody, kFailedPrecondition);
  CHECK_THAT(MessageOf(nobody), Catch::Contains("a FIFO that nobody reads; start its reader"));
  const UniqueFd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  KVD_REQUIRE_OK(CheckAuditFile(path));
  const UniqueFd file = OpenAuditFile(path).value();
  CHECK(write(file.get(), "x", 1) == 1);
}

}  // namespace kvd::test
