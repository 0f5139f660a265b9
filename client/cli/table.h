// Rows of words for people: in a frame, as etcdctl prints tables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvd::cli {

// `header` and every row have the same number of cells, and no cell holds a control character.
// Cells that are numbers stand at the right of their column.
std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& rows);

// Name and value, a pair a line, the values beneath each other.
std::string FormatAligned(const std::vector<std::pair<std::string, std::string>>& pairs);

// A number as JSON knows it: [-]digits[.digits] without leading zeros.
bool IsNumber(std::string_view text);

}  // namespace kvd::cli
