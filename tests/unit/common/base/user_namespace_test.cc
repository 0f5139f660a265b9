// Whom an id stands for depends on what the user namespace maps.
#include "common/base/user_namespace.h"

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

UserNamespace Of(const std::string& uid_map, const std::string& overflow) {
  const TempDir proc;
  Write(proc.Join("self/uid_map"), uid_map);
  Write(proc.Join("self/gid_map"), "         0          0 4294967295\n");
  Write(proc.Join("sys/kernel/overflowuid"), overflow);
  return UserNamespace::OfThisProcess(proc.path());
}

}  // namespace

TEST_CASE("UserNamespace: where all ids are mapped, each means somebody") {
  const UserNamespace here = Of("         0          0 4294967295\n", "65534\n");
  CHECK(here.users.Vouched(0) == 0);
  CHECK(here.users.Vouched(65534) == 65534);
  CHECK(here.groups.Vouched(65534) == 65534);
}

TEST_CASE("UserNamespace: where some are not, the overflow id means nobody, though it be mapped") {
  for (const char* map : {"0 100000 65536\n", "65534 7001 1\n", "0 1000 1\n1 100000 65535\n", ""}) {
    const UserNamespace here = Of(map, "65534\n");
    CHECK(here.users.Vouched(65534) == kNoId);
    CHECK(here.users.Vouched(0) == 0);
    CHECK(here.users.Vouched(7001) == 7001);
    CHECK(here.groups.Vouched(65534) == 65534);
  }
  const UserNamespace other = Of("0 0 1\n", "1234\n");
  CHECK(other.users.Vouched(1234) == kNoId);
  CHECK(other.users.Vouched(65534) == 65534);
}

TEST_CASE("UserNamespace: without /proc the default overflow id means nobody") {
  const TempDir empty;
  const UserNamespace here = UserNamespace::OfThisProcess(empty.path());
  CHECK(here.users.Vouched(65534) == kNoId);
  CHECK(here.groups.Vouched(65534) == kNoId);
  CHECK(here.users.Vouched(1) == 1);
}

}  // namespace kvd::test
