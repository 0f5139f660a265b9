// Rows of words for people: in a frame, as etcdctl prints tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvd::cli {

// `header` and every row have the same number of cells, and no cell holds a control character.
// Cells that are numbers stand at the right of their column. Where the table would be wider than
// `columns` (0: never), the last column goes on in further rows, unless next to nothing were left
// of it.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows, size_t columns = 0);

// Name and value, a pair a line, the values beneath each other.
std::string FormatAligned(const std::vector<std::pair<std::string, std::string>>& pairs);

// A number as JSON knows it: [-]digits[.digits] without leading zeros.
bool IsNumber(std::string_view text);

}  // namespace kvd::cli
