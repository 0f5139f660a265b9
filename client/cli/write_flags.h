// Flags that several writing commands take.
#pragma once

#include <optional>
#include <string_view>

#include "client/cli/flags.h"
#include "client/cli/invocation.h"
#include "client/cli/store.h"

namespace kvd::cli {

// What happens to an item is said where it is written, never by the environment.
constexpr Flag ItemFlag(std::string_view name, FlagKind kind, std::string_view placeholder,
                        std::string_view help) {
  return {name, '\0', kind, placeholder, "", help, false};
}

inline constexpr Flag kTtlFlag = ItemFlag(
    "ttl", FlagKind::kTtl, "TIME", "the item expires after TIME: 60 (seconds), 500ms, 10m, 2h, 1d");
inline constexpr Flag kExpireAtFlag =
    ItemFlag("expire_at", FlagKind::kMoment, "TIME",
             "the item expires at TIME by kvd's clock: Unix seconds or 2027-01-31T12:00:00Z");
inline constexpr Flag kUserFlagsFlag =
    ItemFlag("flags", FlagKind::kCount, "N", "a number of 32 bits that is kept with the item");
inline constexpr Flag kIfFlag =
    ItemFlag("if", FlagKind::kChoice, "absent|present|version:N",
             "only if the key has no item, has one, or has one of version N");
inline constexpr Flag kIfVersionFlag =
    ItemFlag("if", FlagKind::kChoice, "version:N", "only if the item has version N");
inline constexpr Flag kIfThereFlag = ItemFlag("if", FlagKind::kChoice, "present|version:N",
                                              "only if the key has an item, or one of version N");

// What those of them say that the command has. Nothing: they do not go together, which has been
// reported; return kUsage.
std::optional<WriteOptions> WriteOptionsOf(Invocation& run, std::string_view subject);

// For a write that was done: notes it where --expire_at had passed, so that the item is gone.
void NoteOfPast(Invocation& run, std::string_view subject, const WriteOptions& options,
                KeyValueStore& store);

// The number of an item's version, as --if=version:N and cas take it.
std::optional<uint64_t> ParseVersion(std::string_view text);

}  // namespace kvd::cli
