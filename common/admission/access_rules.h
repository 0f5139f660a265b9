// Who may become a session, and as what: the file that kvd's --keys and a client's --key_file name.
//
//   # who             may         secret, in hexadecimal: openssl rand -hex 32
//   key app-2026-11   read-write  5f0c...
//   key backup        read        91ab...
//   user postgres     read
//   group kvd         read-write
//
// A key serves over every transport. `user` and `group` (a name or a number) are of processes on
// this host and hold over shared memory only, where the kernel vouches for them; of several that
// match, the one that may most counts.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/hello.h"

namespace kvd {

struct AccessKey {
  std::string name;
  Role role = Role::kNone;
  std::string secret;  // bytes

  friend bool operator==(const AccessKey&, const AccessKey&) = default;
};

struct PeerRule {
  enum class Kind : uint8_t { kUser, kGroup } kind{};
  uint32_t id = 0;  // uid or gid
  Role role = Role::kNone;
};

struct AccessRules {
  std::vector<AccessKey> keys;  // each of a name of its own
  std::vector<PeerRule> peers;

  // Null: there is none of that name.
  const AccessKey* Find(std::string_view name) const;
  // What a process of that user and these groups may; kNone: no rule names it.
  Role RoleOf(uid_t user, std::span<const gid_t> groups) const;
};

inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 64;
inline constexpr size_t kAccessFileBytesMax = size_t{1} << 20;

// Number of a user or group by its name; nullopt: nobody of that name.
using NameLookup = std::function<std::optional<uint32_t>(PeerRule::Kind, const std::string&)>;

// InvalidArgument: one line that names the line's number, what is wrong with it and what it should
// be; never a secret.
absl::StatusOr<AccessRules> ParseAccessRules(std::string_view text, const NameLookup& lookup);

// Whether a file with that status holds secrets of `user` alone. InvalidArgument, PermissionDenied.
absl::Status CheckKeyFile(const struct stat& file, uid_t user, const std::string& path);

// Reads such a file. NotFound, PermissionDenied (also where others than its owner could read or
// write it, or the owner is neither this process's user nor root), InvalidArgument (also where it
// lets nobody in): each names the path and says what to do. Blocks for the file.
absl::StatusOr<AccessRules> LoadAccessRules(const std::string& path);
// The same for rules that replace others: a file without any is one that takes them all away.
absl::StatusOr<AccessRules> ReloadAccessRules(const std::string& path);

// The key for a client: the one of that name, or the first one where `name` is empty. Errors as
// LoadAccessRules; NotFound: the file has no such key.
absl::StatusOr<AccessKey> LoadAccessKey(const std::string& path, std::string_view name);

}  // namespace kvd
