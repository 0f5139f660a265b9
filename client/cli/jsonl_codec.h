// Items as JSON objects, one a line: {"key":"...","value":"..."}. Bytes that are no text (no
// UTF-8, or mostly control characters) go into a field of the same name with _base64 (or, where
// asked for, _hex) appended, so any bytes round-trip, and no line is much more than twice as
// long as its item. "expiry_unix_us" and "user_flags" are there where they are not 0.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/item.h"

namespace kvd::cli {

enum class ByteText { kText, kHex };  // kText: base64 where it is no text

// Appends `"NAME":"..."`, `"NAME_base64":"..."` or `"NAME_hex":"..."`.
void AppendJsonBytes(std::string_view name, std::string_view bytes, ByteText form,
                     std::string& out);

// Appends the line with its newline.
void AppendJsonLine(std::string_view key, std::string_view value, const ItemTraits& traits,
                    std::string& out);

// Appends `,"expiry_unix_us":N` and `,"user_flags":N`, where they are not 0.
void AppendJsonTraits(const ItemTraits& traits, std::string& out);

// `line` has no newline. Takes exactly one key field and one value field, each _base64, _hex or
// plain, and at most one of each trait, in any order; other fields, whatever is in them, are passed
// over. InvalidArgument says what is wrong; `item` is then unspecified.
absl::Status ParseJsonLine(std::string_view line, Item& item);

}  // namespace kvd::cli
