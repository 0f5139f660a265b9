// Flags that several writing commands take.
#pragma once

#include <optional>
#include <string_view>

#include "client/cli/flags.h"
#include "client/cli/invocation.h"
#include "client/cli/store.h"

namespace kvd::cli {

inline constexpr Flag kTtlFlag = {
    "ttl",  '\0', FlagKind::kTtl,
    "TIME", "",   "the item expires after TIME: 60 (seconds), 500ms, 10m, 2h, 1d"};
inline constexpr Flag kExpireAtFlag = {
    "expire_at",
    '\0',
    FlagKind::kMoment,
    "TIME",
    "",
    "the item expires at TIME by kvd's clock: Unix seconds or 2027-01-31T12:00:00Z"};
inline constexpr Flag kUserFlagsFlag = {
    "flags", '\0', FlagKind::kCount, "N", "", "a number of 32 bits that is kept with the item"};
inline constexpr Flag kIfFlag = {"if",
                                 '\0',
                                 FlagKind::kChoice,
                                 "absent|present|version:N",
                                 "",
                                 "only if the key has no item, has one, or has one of version N"};
inline constexpr Flag kIfVersionFlag = {"if",        '\0', FlagKind::kChoice,
                                        "version:N", "",   "only if the item has version N"};
inline constexpr Flag kIfThereFlag = {"if",
                                      '\0',
                                      FlagKind::kChoice,
                                      "present|version:N",
                                      "",
                                      "only if the key has an item, or one of version N"};

// What those of them say that the command has. Nothing: they do not go together, which has been
// reported; return kUsage.
std::optional<WriteOptions> WriteOptionsOf(Invocation& run, std::string_view subject);

// The number of an item's version, as --if=version:N and cas take it.
std::optional<uint64_t> ParseVersion(std::string_view text);

}  // namespace kvd::cli
