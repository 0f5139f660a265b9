#include "client/cli/table.h"

#include <algorithm>

#include "client/cli/text.h"

namespace kvd::cli {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void AppendRule(const std::vector<size_t>& widths, std::string& out) {
  for (const size_t width : widths) out += '+' + std::string(width + 2, '-');
  out += "+\n";
}

void AppendRow(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
               std::string& out) {
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string fill(widths[i] - DisplayWidth(cells[i]), ' ');
    out += IsNumber(cells[i]) ? "| " + fill + cells[i] + ' ' : "| " + cells[i] + fill + ' ';
  }
  out += "|\n";
}

// The longest beginning of `text`, which is not empty, that takes at most `width` columns.
std::string_view Beginning(std::string_view text, size_t width) {
  size_t end = 0;
  do {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  } while (end < text.size() && DisplayWidth(text.substr(0, end)) < width);
  return text.substr(0, end);
}

constexpr size_t kWrappedWidthMin = 10;

std::vector<std::vector<std::string>> WithLastColumnWrapped(
    const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
    size_t columns) {
  size_t taken = 1 + 3 * header.size();  // frames and blanks
  for (size_t i = 0; i + 1 < header.size(); ++i) {
    size_t width = DisplayWidth(header[i]);
    for (const std::vector<std::string>& row : rows) {
      width = std::max(width, DisplayWidth(row[i]));
    }
    taken += width;
  }
  if (columns < taken + kWrappedWidthMin) return rows;
  std::vector<std::vector<std::string>> wrapped;
  for (const std::vector<std::string>& row : rows) {
    std::string_view rest = row.back();
    std::vector<std::string> line = row;
    do {
      const std::string_view piece = rest.empty() ? rest : Beginning(rest, columns - taken);
      line.back() = piece;
      wrapped.push_back(line);
      rest.remove_prefix(piece.size());
      line.assign(row.size(), "");
    } while (!rest.empty());
  }
  return wrapped;
}

}  // namespace

bool IsNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  if (!IsDigits(whole) || (whole.size() > 1 && whole[0] == '0')) return false;
  return point == std::string_view::npos || IsDigits(text.substr(point + 1));
}

std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& all_rows, size_t columns) {
  const std::vector<std::vector<std::string>> rows =
      columns == 0 ? all_rows : WithLastColumnWrapped(header, all_rows, columns);
  std::vector<size_t> widths;
  for (const std::string& cell : header) widths.push_back(DisplayWidth(cell));
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string out;
  AppendRule(widths, out);
  AppendRow(header, widths, out);
  AppendRule(widths, out);
  for (const std::vector<std::string>& row : rows) AppendRow(row, widths, out);
  if (!rows.empty()) AppendRule(widths, out);
  return out;
}

std::string FormatAligned(const std::vector<std::pair<std::string, std::string>>& pairs) {
  size_t width = 0;
  for (const auto& [name, unused] : pairs) width = std::max(width, DisplayWidth(name));
  std::string out;
  for (const auto& [name, value] : pairs) {
    out += name + std::string(width - DisplayWidth(name) + 2, ' ') + value + '\n';
  }
  return out;
}

}  // namespace kvd::cli
