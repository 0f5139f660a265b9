// The formats that `load` reads and `dump` writes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/item.h"

namespace kvd::cli {

enum class ItemFormat { kTsv, kJsonLines, kDelimited };

// By the ending of a file's name: .tsv; .jsonl, .ndjson, .json. Nothing for any other.
std::optional<ItemFormat> FormatOfName(std::string_view file_name);

// By the first line that is not blank: JSON lines if it begins with a brace, otherwise TSV.
ItemFormat FormatOfLine(std::string_view line);

// "tsv", "jsonl", "delimited"; nothing for any other.
std::optional<ItemFormat> FormatOfWord(std::string_view word);

// The item of one line without its newline. kDelimited: the key is what precedes the first
// `separator` and the value all that follows it, byte for byte, no escapes; otherwise `separator`
// is not used. InvalidArgument says what is wrong with the line.
absl::Status ParseItemLine(ItemFormat format, std::string_view separator, std::string_view line,
                           Item& item);

// Appends the item's line in a format that is not kDelimited.
void AppendItemLine(ItemFormat format, std::string_view key, std::string_view value,
                    const ItemTraits& traits, std::string& out);

}  // namespace kvd::cli
