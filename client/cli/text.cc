#include "client/cli/text.h"

#include <cstdint>

namespace kvd::cli {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr size_t kQuotedBytesMax = 60;

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Length of the well-formed sequence at the start of `bytes` (not empty), or 0.
size_t Utf8SequenceBytes(std::string_view bytes) {
  const auto at = [bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (bytes.size() < length) return 0;
  // The second byte's range is narrower after these: overlong forms, surrogates, above U+10FFFF.
  const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!IsContinuation(at(i))) return 0;
  }
  return length;
}

void AppendHexEscape(char byte, std::string& out) {
  out += "\\x";
  out += kHexDigits[static_cast<uint8_t>(byte) >> 4];
  out += kHexDigits[static_cast<uint8_t>(byte) & 15];
}

bool IsControl(std::string_view sequence) {
  const uint8_t first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  const uint8_t second = static_cast<uint8_t>(sequence[1]);
  return first == 0xC2 && second >= 0x80 && second < 0xA0;  // C1
}

std::string Shown(std::string_view bytes, bool keep_layout) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = Utf8SequenceBytes(bytes);
    const std::string_view sequence = bytes.substr(0, length == 0 ? 1 : length);
    bytes.remove_prefix(sequence.size());
    const char byte = sequence[0];
    if (length != 0 && !IsControl(sequence)) {
      out += sequence;
    } else if (byte == '\n' || byte == '\t') {
      if (keep_layout) {
        out += byte;
      } else {
        out += byte == '\n' ? "\\n" : "\\t";
      }
    } else if (byte == '\r') {
      out += "\\r";
    } else {
      for (const char each : sequence) AppendHexEscape(each, out);
    }
  }
  return out;
}

}  // namespace

bool IsValidUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = Utf8SequenceBytes(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string HexOf(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    out += kHexDigits[static_cast<uint8_t>(byte) >> 4];
    out += kHexDigits[static_cast<uint8_t>(byte) & 15];
  }
  return out;
}

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::optional<std::string> BytesOfHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigit(text[i]);
    const int low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string JsonNumber(uint64_t number) {
  constexpr uint64_t kExactMax = uint64_t{1} << 53;
  const std::string digits = std::to_string(number);
  return number < kExactMax ? digits : '"' + digits + '"';
}

void AppendJsonString(std::string_view bytes, std::string& out) {
  out += '"';
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char byte = bytes[i];
    switch (byte) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (IsControl(bytes.substr(i, 1))) {
          out += "\\u00" + HexOf(bytes.substr(i, 1));
        } else if (byte == '\xC2' && i + 1 < bytes.size() && IsControl(bytes.substr(i, 2))) {
          out += "\\u00" + HexOf(bytes.substr(++i, 1));
        } else {
          out += byte;
        }
    }
  }
  out += '"';
}

std::string OneLine(std::string_view bytes) { return Shown(bytes, false); }

std::string ForTerminal(std::string_view bytes) { return Shown(bytes, true); }

std::string Quoted(std::string_view bytes) {
  std::string_view shown = bytes;
  const bool cut = bytes.size() > kQuotedBytesMax;
  if (cut) {
    shown = bytes.substr(0, kQuotedBytesMax);
    // Not in the middle of a character.
    for (int i = 0; i < 3 && !IsValidUtf8(shown); ++i) shown.remove_suffix(1);
    if (!IsValidUtf8(shown)) shown = bytes.substr(0, kQuotedBytesMax);
  }
  const std::string text = OneLine(shown);
  const bool plain =
      !bytes.empty() && text == shown && text.find_first_of(" \"';") == std::string::npos;
  return (plain ? text : '"' + text + '"') + (cut ? "..." : "");
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (const char byte : text) width += IsContinuation(static_cast<uint8_t>(byte)) ? 0 : 1;
  return width;
}

}  // namespace kvd::cli
