// Items as lines "KEY<TAB>VALUE", and where an item has them <TAB>expiry_unix_us=N and
// <TAB>user_flags=N, in this order. In key and value \t, \n, \r, \\ and \xNN stand for a byte; what
// is written escapes whatever would not survive as a line of text, so any bytes round-trip.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/item.h"

namespace kvd::cli {

// Appends the line with its newline.
void AppendTsvLine(std::string_view key, std::string_view value, const ItemTraits& traits,
                   std::string& out);

// `line` has no newline. InvalidArgument says what is wrong with it and at which byte (from 1);
// `item` is then unspecified. An empty key is left to the server to refuse.
absl::Status ParseTsvLine(std::string_view line, Item& item);

// Appends the bytes that `field` stands for. InvalidArgument: an escape that is none. `offset` is
// where the field starts in its line, for the message.
absl::Status UnescapeTsvField(std::string_view field, size_t offset, std::string& out);

}  // namespace kvd::cli
