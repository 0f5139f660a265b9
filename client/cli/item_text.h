// How items look on standard output.
#pragma once

#include <string>
#include <string_view>

#include "client/cli/jsonl_codec.h"
#include "client/cli/store.h"

namespace kvd::cli {

struct TextStyle {
  bool hex = false;
  bool terminal = false;  // nothing that could steer it
};

// The bytes themselves, for a pipe or file; escaped for a terminal; digits with --hex.
std::string ValueText(std::string_view bytes, const TextStyle& style);

// The same in one line, for lists and tables.
std::string LineText(std::string_view bytes, const TextStyle& style);
std::string CellText(std::string_view bytes, bool hex);

// One line: {"key":...,"value":...,"version":N}, with "user_flags" and "expiry_unix_us" where they
// are not 0. Versions as JsonNumber has them.
void AppendItemJson(std::string_view key, std::string_view value, const ItemInfo& info,
                    ByteText form, std::string& out);

}  // namespace kvd::cli
