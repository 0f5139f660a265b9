#include "common/admission/access_rules.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/admission/role.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/unique_fd.h"
#include "common/base/user_namespace.h"

namespace kvd {
namespace {

constexpr size_t kNameBytesMax = kKeyNameBytes - 1;

absl::Status Bad(std::string_view why) { return absl::InvalidArgumentError(ToAbsl(why)); }

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                  c == '-';
         });
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
}

absl::StatusOr<Role> RoleIn(std::string_view word) {
  const std::optional<Role> role = ParseRole(word);
  if (!role) return Bad("the role must be read, read-write or admin");
  return *role;
}

absl::Status AddKey(const std::vector<std::string_view>& words, AccessRules& rules) {
  if (words.size() != 4) return Bad("must be: key NAME ROLE SECRET");
  AccessKey key;
  if (!IsName(words[1])) {
    return Bad(absl::StrCat("the name must have 1 to ", kNameBytesMax,
                            " letters, digits, '.', '_' or '-'"));
  }
  key.name = words[1];
  if (rules.Find(key.name) != nullptr) {
    return Bad(absl::StrCat("there is a key '", key.name, "' above; give this one another name"));
  }
  KVD_ASSIGN_OR_RETURN(key.role, RoleIn(words[2]));
  const std::string_view hex = words[3];
  if (!IsHex(hex) || hex.size() % 2 != 0 || hex.size() < 2 * kSecretBytesMin ||
      hex.size() > 2 * kSecretBytesMax) {
    return Bad(absl::StrCat("the secret must be an even number of hexadecimal digits, ",
                            2 * kSecretBytesMin, " to ", 2 * kSecretBytesMax,
                            "; make one with: openssl rand -hex 32"));
  }
  key.secret = absl::HexStringToBytes(ToAbsl(hex));
  for (const AccessKey& other : rules.keys) {
    if (other.secret != key.secret) continue;
    return Bad(absl::StrCat("key '", key.name, "' has the secret of '", other.name,
                            "': whoever has one has the other's role too; make it one of its own "
                            "with: openssl rand -hex 32"));
  }
  rules.keys.push_back(std::move(key));
  return absl::OkStatus();
}

absl::Status AddPeer(PeerRule::Kind kind, const std::vector<std::string_view>& words,
                     const NameLookup& lookup, AccessRules& rules) {
  const char* const what = kind == PeerRule::Kind::kUser ? "user" : "group";
  if (words.size() != 3) return Bad(absl::StrCat("must be: ", what, " NAME_OR_NUMBER ROLE"));
  PeerRule rule{.kind = kind};
  const std::string name(words[1]);
  if (!absl::SimpleAtoi(name, &rule.id)) {
    const std::optional<uint32_t> id = lookup(kind, name);
    if (!id) return Bad(absl::StrCat("no ", what, " of that name on this host"));
    rule.id = *id;
  }
  if (rule.id == kNoId) return Bad(absl::StrCat("no ", what, " has that number"));
  KVD_ASSIGN_OR_RETURN(rule.role, RoleIn(words[2]));
  rules.peers.push_back(rule);
  return absl::OkStatus();
}

absl::Status AddLine(const std::vector<std::string_view>& words, const NameLookup& lookup,
                     AccessRules& rules) {
  if (words[0] == "key") return AddKey(words, rules);
  if (words[0] == "user") return AddPeer(PeerRule::Kind::kUser, words, lookup, rules);
  if (words[0] == "group") return AddPeer(PeerRule::Kind::kGroup, words, lookup, rules);
  return Bad("must begin with key, user or group");
}

// Room for an entry of the user database; those of large groups are longer.
constexpr size_t kEntryBytesMax = size_t{1} << 20;

std::optional<uint32_t> LookUpOnThisHost(PeerRule::Kind kind, const std::string& name) {
  std::string room(kEntryBytesMax, '\0');
  if (kind == PeerRule::Kind::kUser) {
    passwd entry{};
    passwd* found = nullptr;
    if (getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0) return {};
    return found == nullptr ? std::nullopt : std::optional<uint32_t>(found->pw_uid);
  }
  group entry{};
  group* found = nullptr;
  if (getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0) return {};
  return found == nullptr ? std::nullopt : std::optional<uint32_t>(found->gr_gid);
}

absl::Status OpenError(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(
          absl::StrCat("no key file at ", path, "; make one, for its owner alone"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(
          absl::StrCat("may not read the key file ", path, "; it must belong to this user"));
    default:
      return ErrnoStatus(error, absl::StrCat("open of the key file ", path));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return OpenError(errno, path);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return ErrnoStatus(absl::StrCat("stat of ", path));
  // Of the file that is open, so that nothing can come in between.
  KVD_RETURN_IF_ERROR(CheckKeyFile(status, geteuid(), path));
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t got = read(file.get(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(absl::StrCat("read of ", path));
    if (got == 0) return text;
    text.append(piece, static_cast<size_t>(got));
    if (text.size() > kAccessFileBytesMax) {
      return Bad(
          absl::StrCat("the key file ", path, " is longer than ", kAccessFileBytesMax, " bytes"));
    }
  }
}

}  // namespace

const AccessKey* AccessRules::Find(std::string_view name) const {
  const auto found = std::find_if(keys.begin(), keys.end(),
                                  [name](const AccessKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

Role AccessRules::RoleOf(uid_t user, std::span<const gid_t> groups) const {
  Role most = Role::kNone;
  for (const PeerRule& rule : peers) {
    const bool matches = rule.kind == PeerRule::Kind::kUser
                             ? rule.id == user
                             : std::find(groups.begin(), groups.end(), rule.id) != groups.end();
    if (matches) most = std::max(most, rule.role);
  }
  return most;
}

absl::Status CheckKeyFile(const struct stat& file, uid_t user, const std::string& path) {
  if (!S_ISREG(file.st_mode)) {
    return Bad(
        absl::StrCat("the key file ", path, " is not a regular file; put the keys into one"));
  }
  if (file.st_uid != user && file.st_uid != 0) {
    return absl::PermissionDeniedError(absl::StrCat("the key file ", path, " belongs to user ",
                                                    file.st_uid, "; chown it to ", user));
  }
  if ((file.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("others than its owner may use the key file %s (mode %04o); chmod 600 %s",
                        path, file.st_mode & 07777, path));
  }
  return absl::OkStatus();
}

absl::StatusOr<AccessRules> ParseAccessRules(std::string_view text, const NameLookup& lookup) {
  AccessRules rules;
  size_t number = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    ++number;
    std::vector<std::string_view> words;
    for (const absl::string_view word :
         absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
      if (word[0] == '#') break;
      words.push_back(ToStd(word));
    }
    if (words.empty()) continue;
    if (const absl::Status added = AddLine(words, lookup, rules); !added.ok()) {
      return Bad(absl::StrCat("line ", number, ": ", added.message()));
    }
  }
  return rules;
}

absl::StatusOr<AccessRules> ReloadAccessRules(const std::string& path) {
  KVD_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<AccessRules> rules = ParseAccessRules(text, LookUpOnThisHost);
  if (!rules.ok()) {
    const absl::string_view why = rules.status().message();
    return Bad(absl::StrCat("key file ", path, ", ", why,
                            absl::StrContains(why, "; ") ? "" : "; correct that line"));
  }
  return rules;
}

absl::StatusOr<AccessRules> LoadAccessRules(const std::string& path) {
  absl::StatusOr<AccessRules> rules = ReloadAccessRules(path);
  if (!rules.ok()) return rules;
  if (rules->keys.empty() && rules->peers.empty()) {
    return Bad(absl::StrCat("the key file ", path,
                            " lets nobody in; add a line such as: key app read-write SECRET"));
  }
  return rules;
}

absl::StatusOr<AccessKey> LoadAccessKey(const std::string& path, std::string_view name) {
  KVD_ASSIGN_OR_RETURN(const AccessRules rules, LoadAccessRules(path));
  if (rules.keys.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "the key file ", path, " has no line 'key ...'; add the key that the server knows"));
  }
  if (name.empty()) return rules.keys.front();
  const AccessKey* const key = rules.Find(name);
  if (key == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the key file ", path, " has no key '", ToAbsl(name), "'; name another"));
  }
  return *key;
}

}  // namespace kvd
