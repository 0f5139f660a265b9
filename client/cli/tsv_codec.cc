#include "client/cli/tsv_codec.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/status_macros.h"

namespace kvd::cli {
namespace {

constexpr std::string_view kExpiry = "expiry_unix_us=";
constexpr std::string_view kUserFlags = "user_flags=";

void AppendEscaped(std::string_view field, std::string& out) {
  const bool utf8 = IsValidUtf8(field);
  for (const char byte : field) {
    switch (byte) {
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\\':
        out += "\\\\";
        break;
      default: {
        const uint8_t number = static_cast<uint8_t>(byte);
        if (number < 0x20 || number == 0x7F || (number >= 0x80 && !utf8)) {
          out += "\\x";
          out += HexOf({&byte, 1});
        } else {
          out += byte;
        }
      }
    }
  }
}

// Takes "<TAB>NAME=N" off the front of `rest`, if it begins with the TAB and the name. An error
// says which field it is, what stands there, and what may.
template <typename Number>
absl::Status TakeTrait(std::string_view name, std::string_view& rest, Number& number) {
  if (!rest.starts_with('\t') || !rest.substr(1).starts_with(name)) return absl::OkStatus();
  const size_t field_end = std::min(rest.find('\t', 1), rest.size());
  const std::string_view field = rest.substr(1, field_end - 1);
  const std::string_view digits = field.substr(name.size());
  const char* const end = digits.data() + digits.size();
  const auto [after, error] = std::from_chars(digits.data(), end, number);
  if (error != std::errc() || number <= 0 || after != end) {
    return absl::InvalidArgumentError(
        absl::StrCat("field ", Quoted(field), " is no whole number from 1 to ",
                     std::numeric_limits<Number>::max(), "; write ",
                     name == kExpiry ? "microseconds of Unix time, " : "a number of 32 bits, ",
                     "or leave the field out"));
  }
  rest.remove_prefix(field_end);
  return absl::OkStatus();
}

}  // namespace

void AppendTsvLine(std::string_view key, std::string_view value, const ItemTraits& traits,
                   std::string& out) {
  // A file that starts with these bytes would lose them as a byte order mark, and one that starts
  // with a brace would be taken for JSON lines.
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (key.substr(0, kMark.size()) == kMark) {
    out += "\\xef\\xbb\\xbf";
    key.remove_prefix(kMark.size());
  } else if (!key.empty() && key[0] == '{') {
    out += "\\x7b";
    key.remove_prefix(1);
  }
  AppendEscaped(key, out);
  out += '\t';
  AppendEscaped(value, out);
  if (traits.expiry_unix_us != 0) absl::StrAppend(&out, "\texpiry_unix_us=", traits.expiry_unix_us);
  if (traits.user_flags != 0) absl::StrAppend(&out, "\tuser_flags=", traits.user_flags);
  out += '\n';
}

absl::Status UnescapeTsvField(std::string_view field, size_t offset, std::string& out) {
  out.reserve(out.size() + field.size());
  for (size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '\\') {
      out += field[i];
      continue;
    }
    const size_t start = i++;
    const char kind = i < field.size() ? field[i] : '\0';
    if (kind == 't') {
      out += '\t';
    } else if (kind == 'n') {
      out += '\n';
    } else if (kind == 'r') {
      out += '\r';
    } else if (kind == '\\') {
      out += '\\';
    } else if (kind == 'x' && i + 2 < field.size() && HexDigit(field[i + 1]) >= 0 &&
               HexDigit(field[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(field[i + 1]) * 16 + HexDigit(field[i + 2]));
      i += 2;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("no escape follows the backslash at byte ", offset + start + 1,
                       "; write \\t, \\n, \\r, \\xNN, or \\\\ for a backslash"));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseTsvLine(std::string_view line, Item& item) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    return absl::InvalidArgumentError("no TAB between key and value");
  }
  const size_t end = std::min(line.find('\t', tab + 1), line.size());
  std::string_view rest = line.substr(end);
  KVD_RETURN_IF_ERROR(TakeTrait(kExpiry, rest, item.traits.expiry_unix_us));
  KVD_RETURN_IF_ERROR(TakeTrait(kUserFlags, rest, item.traits.user_flags));
  if (!rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("a second TAB at byte ",
                                                   line.size() - rest.size() + 1,
                                                   "; within a value write it as \\t"));
  }
  item.key.clear();
  item.value.clear();
  KVD_RETURN_IF_ERROR(UnescapeTsvField(line.substr(0, tab), 0, item.key));
  return UnescapeTsvField(line.substr(tab + 1, end - tab - 1), tab + 1, item.value);
}

}  // namespace kvd::cli
