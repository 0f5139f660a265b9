#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/bundle.h"
#include "client/cli/redaction.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using kvd::test::TempDir;
using namespace std::string_literals;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("Redaction: a command line without what has to do with keys") {
  CHECK(RedactedCommandLine("kvd\0--memory=64m\0--keys=/etc/kvd/k\0--keys\0/x\0--evict=lru\0"s) ==
        "kvd\n--memory=64m\n--keys=(not shown)\n--keys\n(not shown)\n--evict=lru\n");
  CHECK(RedactedCommandLine("kvd\0--key_file\0--shm=/s\0"s) == "kvd\n--key_file\n--shm=/s\n");
  CHECK(RedactedCommandLine("a\x1b[2J").find('\x1b') == std::string::npos);
  CHECK(RedactedCommandLine("").empty());
}

TEST_CASE("Redaction: of the environment, how to connect; of the rest that it is set") {
  const std::map<std::string, const char*> environment = {
      {"KVCLI_SERVER", "shm:/s"},        {"KVCLI_KEY_FILE", "/secret"}, {"KVCLI_KEY_NAME", "me"},
      {"KVCLI_PREFIX", "user:private:"}, {"HOME", "/home/somebody"},    {"KVCLI_DEADLINE", "9s"}};
  const std::string shown = RedactedEnvironment([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second;
  });
  CHECK_THAT(shown, Catch::Contains("KVCLI_SERVER=shm:/s\n") &&
                        Catch::Contains("KVCLI_DEADLINE=9s\n") &&
                        Catch::Contains("KVCLI_KEY_FILE is set\n") &&
                        Catch::Contains("KVCLI_KEY_NAME is set\n"));
  for (const char* secret : {"/secret", "=me", "private", "somebody", "HOME"}) {
    CHECK_THAT(shown, !Catch::Contains(secret));
  }
}

TEST_CASE("Redaction: words that stand by themselves are left out of a text, and no others") {
  CHECK(WithoutWords("the key file /k/app.keys has no key 'app', name another; apple",
                     {"app", "/k/app.keys", ""}) ==
        "the key file (not shown) has no key '(not shown)', name another; apple");
  CHECK(WithoutWords("app", {"app"}) == "(not shown)");
  CHECK(WithoutWords("", {"app"}).empty());
}

TEST_CASE("Redaction: the mount that a path is on is the longest, and the last of two") {
  const std::string mounts =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 0:20 / /run rw,nosuid - tmpfs tmpfs rw\n"
      "24 22 0:21 / /run rw,noexec - tmpfs tmpfs rw\n"
      "25 22 0:22 / /run/kv rw - tmpfs tmpfs rw\n"
      "short\n";
  CHECK_THAT(MountOf(mounts, "/run/kvd/kvd.sock"), Catch::Contains("noexec"));
  CHECK_THAT(MountOf(mounts, "/home/x"), Catch::StartsWith("22 "));
  CHECK_THAT(MountOf(mounts, "/run/kv/s"), Catch::StartsWith("25 "));
  CHECK(MountOf("", "/x").empty());
}

TEST_CASE("Bundle: a new file for its owner alone, whatever the umask, and never an earlier one") {
  const TempDir directory;
  const std::string path = directory.Join("b");
  const mode_t before = ::umask(0777);
  const absl::Status written = WriteNewPrivateFile(path, "text");
  ::umask(before);
  CHECK(written.ok());
  struct stat about {};
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 07777) == 0600);
  CHECK(absl::IsAlreadyExists(WriteNewPrivateFile(path, "other")));
  CHECK(Contents(path) == "text");
  std::filesystem::create_symlink(directory.Join("elsewhere"), directory.Join("link"));
  CHECK_FALSE(WriteNewPrivateFile(directory.Join("link"), "x").ok());
  CHECK_FALSE(std::filesystem::exists(directory.Join("elsewhere")));
  CHECK_FALSE(WriteNewPrivateFile(directory.Join("no/folder"), "x").ok());
  if (::access("/dev/full", W_OK) == 0) {
    // Created by somebody else, it is there.
    CHECK(absl::IsAlreadyExists(WriteNewPrivateFile("/dev/full", "x")));
  }
}

TEST_CASE("bundle: says what is in it and what is missing, and has nothing of items") {
  const TempDir directory;
  FakeServer server;
  server.Insert("private-key", "private-value");
  server.statistics = {{"version", "0.1.0"}, {"items", "1"}, {"pid", "0"}, {"odd", "a\x1b[2J"}};
  const std::string path = directory.Join("b.txt");
  CliOptions options;
  options.environment = {{"KVCLI_KEY_NAME", "private-name"}};
  const CliResult result = RunCli(server, {"bundle", path}, options);
  CHECK(result.exit == 0);
  CHECK_THAT(result.out, Catch::Contains("mode 0600") && Catch::Contains("stat") &&
                             Catch::Contains("missing: its process is not of this machine"));
  const std::string text = Contents(path);
  CHECK_THAT(text, Catch::Contains("== stat ==\nversion  0.1.0\n") &&
                       Catch::Contains("== environment ==\nKVCLI_KEY_NAME is set\n") &&
                       Catch::Contains("2023-11-14T22:13:2"));
  CHECK_THAT(text, !Catch::Contains("private") && !Catch::Contains("\x1b"));
  const uint64_t version = server.last_version;
  CHECK(version == 1);  // nothing was written
  const CliResult again = RunCli(server, {"bundle", path}, options);
  CHECK(again.exit == 7);
  CHECK_THAT(again.err, Catch::Contains("is there already; name another file"));
}

TEST_CASE("bundle: to standard output, with what was measured, and without a server") {
  FakeServer server;
  server.Insert("private-key", "private-value");
  CliResult result = RunCli(server, {"bundle", "-", "--perf"});
  CHECK(result.exit == 0);
  CHECK_THAT(result.out, Catch::Contains("== doctor --perf ==") && Catch::Contains("GET, cold") &&
                             !Catch::Contains("private"));
  server.connect_error = absl::UnavailableError("nobody there; wait");
  result = RunCli(server, {"bundle", "-"});
  CHECK(result.exit == 0);
  CHECK_THAT(result.out, Catch::Contains("== stat ==\nmissing: nobody there"));
  // Whatever is in it otherwise is named as missing.
  result = RunCli(server, {"bundle", "-", "--perf", "--server=shm:/no/such/socket"});
  for (const char* section :
       {"stat", "socket", "kvd's command line", "kvd's limits", "kvd's threads", "doctor --perf"}) {
    CAPTURE(section);
    CHECK_THAT(result.out, Catch::Contains("== "s + section + " ==\nmissing: "));
  }
  CHECK(RunCli(server, {"bundle", "-"}, {.interrupted = [] { return true; }}).exit == 130);
}

}  // namespace
}  // namespace kvd::cli::test
