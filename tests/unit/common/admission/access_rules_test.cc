// The key file: what it may say, what is refused and why, and that no secret gets into a message.
#include "common/admission/access_rules.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

const std::string kSecret = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
const std::string kOther = "ff" + kSecret.substr(2);

std::optional<uint32_t> SomeHost(PeerRule::Kind kind, const std::string& name) {
  if (kind == PeerRule::Kind::kUser && name == "postgres") return 117;
  if (kind == PeerRule::Kind::kGroup && name == "kvd") return 990;
  return std::nullopt;
}

absl::StatusOr<AccessRules> Parse(const std::string& text) {
  return ParseAccessRules(text, SomeHost);
}

std::string Written(const TempDir& dir, const std::string& text, mode_t mode = 0600) {
  const std::string path = dir.Join("keys");
  std::ofstream(path) << text;
  REQUIRE(chmod(path.c_str(), mode) == 0);
  return path;
}

}  // namespace

TEST_CASE("Key file: keys, users and groups, with comments, blanks and lines of Windows") {
  const auto rules = Parse("# who may\n\n  key app read-write " + kSecret +
                           "   # of November\r\nkey backup read " + kOther +
                           "\nuser postgres read\nuser 1001 admin\ngroup kvd read-write");
  KVD_REQUIRE_OK(rules);
  REQUIRE(rules->keys.size() == 2);
  CHECK(rules->keys[0].name == "app");
  CHECK(rules->keys[0].role == Role::kReadWrite);
  CHECK(rules->keys[0].secret.size() == 32);
  CHECK(rules->keys[0].secret[1] == 0x11);
  CHECK(rules->Find("backup")->role == Role::kRead);
  CHECK(rules->Find("back") == nullptr);
  const std::vector<gid_t> none;
  const std::vector<gid_t> kvd = {5, 990};
  CHECK(rules->RoleOf(117, none) == Role::kRead);
  CHECK(rules->RoleOf(117, kvd) == Role::kReadWrite);  // the one that may most
  CHECK(rules->RoleOf(1001, kvd) == Role::kAdmin);
  CHECK(rules->RoleOf(1002, none) == Role::kNone);
  CHECK(rules->RoleOf(990, none) == Role::kNone);  // a group's number is no user's
}

TEST_CASE("Key file: what is wrong with a line is said, with its number and never with a secret") {
  struct Bad {
    std::string line;
    std::string why;
  };
  const std::vector<Bad> bad = {
      {"keys app read " + kSecret, "must begin with key, user or group"},
      {"key app read", "key NAME ROLE SECRET"},
      {"key app read " + kSecret + " more", "key NAME ROLE SECRET"},
      {"key app write " + kSecret, "read, read-write or admin"},
      {"key app none " + kSecret, "read, read-write or admin"},
      {"key a/b read " + kSecret, "letters, digits"},
      {"key " + std::string(32, 'n') + " read " + kSecret, "1 to 31 letters"},
      {"key app read 0011", "32 to 128"},
      {"key app read " + kSecret + "0", "even number"},
      {"key app read " + kSecret + "0x", "hexadecimal digits"},
      {"key app read " + std::string(130, 'a'), "32 to 128"},
      {"key first read " + kSecret, "there is a key 'first' above"},
      {"user nobody-here read", "no user of that name"},
      {"group nobody-here read", "no group of that name"},
      {"user 1 2 read", "user NAME_OR_NUMBER ROLE"},
      {"user -1 read", "no user of that name"},
      {"user 4294967296 read", "no user of that name"},
  };
  for (const Bad& each : bad) {
    INFO(each.line);
    const auto rules = Parse("key first read " + kSecret + "\n" + each.line + "\n");
    KVD_REQUIRE_CODE(rules, kInvalidArgument);
    CHECK_THAT(MessageOf(rules.status()), Contains("line 2: ") && Contains(each.why));
    CHECK_THAT(MessageOf(rules.status()), !Contains(kSecret.substr(0, 16)));
  }
}

TEST_CASE("Key file: two names with one secret are refused: neither role would hold") {
  const auto none = [](PeerRule::Kind, const std::string&) { return std::nullopt; };
  const std::string secret(32, 'a'), other(32, 'b');
  const auto rules = ParseAccessRules("key one read " + secret + "\nkey two admin " + other +
                                          "\nkey three admin " + std::string(32, 'A') + "\n",
                                      none);
  REQUIRE(absl::IsInvalidArgument(rules.status()));
  CHECK_THAT(std::string(rules.status().message()),
             Catch::StartsWith("line 3: key 'three' has the secret of 'one'") &&
                 Catch::Contains("openssl rand -hex 32") && !Catch::Contains("aaaa"));
  CHECK(ParseAccessRules("key one read " + secret + "\nkey two admin " + other + "\n", none).ok());
}

TEST_CASE("Key file: any bytes are taken or refused, and the sanitizers are content") {
  Random random(Seed());
  const std::string alphabet = "key user group read-write admin 0123456789abcdef\n\t #\r";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t n = random.Uniform(200); n > 0; --n) {
      text += random.Uniform(10) == 0 ? static_cast<char>(random.Uniform(256))
                                      : alphabet[random.Uniform(alphabet.size())];
    }
    const auto rules = Parse(text);
    if (!rules.ok()) KVD_REQUIRE_CODE(rules, kInvalidArgument);
  }
}

TEST_CASE("Key file: only its owner may use it, and it has to say something") {
  const TempDir dir;
  const std::string good = "key app read " + kSecret + "\n";
  KVD_REQUIRE_OK(LoadAccessRules(Written(dir, good)));
  for (const mode_t mode : {0640, 0604, 0660, 0620, 0601}) {
    const auto rules = LoadAccessRules(Written(dir, good, mode));
    KVD_REQUIRE_CODE(rules, kPermissionDenied);
    CHECK_THAT(MessageOf(rules.status()), Contains("chmod 600 " + dir.Join("keys")));
  }
  const auto empty = LoadAccessRules(Written(dir, "# nobody yet\n"));
  KVD_REQUIRE_CODE(empty, kInvalidArgument);
  CHECK_THAT(MessageOf(empty.status()), Contains("lets nobody in"));
  // Where it replaces another it takes the last away.
  const auto none_left = ReloadAccessRules(dir.Join("keys"));
  KVD_REQUIRE_OK(none_left);
  CHECK((none_left->keys.empty() && none_left->peers.empty()));
  KVD_REQUIRE_CODE(ReloadAccessRules(Written(dir, "key app\n")), kInvalidArgument);
  KVD_REQUIRE_CODE(ReloadAccessRules(dir.Join("none")), kNotFound);
  // The number that stands for whom nobody knows is no one's.
  for (const char* kind : {"user", "group"}) {
    const auto nobody = LoadAccessRules(Written(dir, std::string(kind) + " 4294967295 read\n"));
    KVD_REQUIRE_CODE(nobody, kInvalidArgument);
    CHECK_THAT(MessageOf(nobody.status()), Contains("has that number"));
  }
  KVD_REQUIRE_CODE(LoadAccessRules(dir.Join("none")), kNotFound);
  KVD_REQUIRE_CODE(LoadAccessRules(dir.path()), kInvalidArgument);  // a directory
  const auto longest = LoadAccessRules(Written(dir, std::string(kAccessFileBytesMax + 1, '\n')));
  KVD_REQUIRE_CODE(longest, kInvalidArgument);
  CHECK_THAT(MessageOf(longest.status()), Contains("longer than"));
  const auto wrong = LoadAccessRules(Written(dir, "key app read 12\n"));
  KVD_REQUIRE_CODE(wrong, kInvalidArgument);
  CHECK_THAT(MessageOf(wrong.status()), Contains(dir.Join("keys") + ", line 1"));
}

TEST_CASE("Key file: one of another user is refused, unless it is root's") {
  struct stat file {};
  file.st_mode = S_IFREG | 0600;
  file.st_uid = 12345;
  KVD_REQUIRE_OK(CheckKeyFile(file, 12345, "/keys"));
  const absl::Status others = CheckKeyFile(file, 1000, "/keys");
  KVD_REQUIRE_CODE(others, kPermissionDenied);
  CHECK_THAT(MessageOf(others), Contains("belongs to user 12345; chown it to 1000"));
  file.st_uid = 0;
  KVD_REQUIRE_OK(CheckKeyFile(file, 1000, "/keys"));
  // It says itself what to do, which is not what to do about a server's address.
  file.st_mode = S_IFIFO | 0600;
  CHECK_THAT(MessageOf(CheckKeyFile(file, 1000, "/keys")), Contains("; put the keys into one"));
}

TEST_CASE("Key file: a client takes the key that it names, or the first") {
  const TempDir dir;
  const std::string path =
      Written(dir, "user 7 read\nkey one read " + kSecret + "\nkey two admin " + kOther + "\n");
  CHECK(LoadAccessKey(path, "")->name == "one");
  CHECK(LoadAccessKey(path, "two")->role == Role::kAdmin);
  const auto three = LoadAccessKey(path, "three");
  KVD_REQUIRE_CODE(three, kNotFound);
  CHECK_THAT(MessageOf(three.status()), Contains("has no key 'three'"));
  KVD_REQUIRE_CODE(LoadAccessKey(Written(dir, "user 7 read\n"), ""), kNotFound);
}

}  // namespace kvd::test
