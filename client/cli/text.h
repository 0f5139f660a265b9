// Bytes as text: UTF-8, hexadecimal, JSON strings, and what is safe to show on a terminal. Pure
// functions of any bytes; none fails but by what it returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvd::cli {

// Well-formed UTF-8 as the Unicode Standard defines it (table 3-7): nothing overlong, no
// surrogates, nothing above U+10FFFF. NUL is fine.
bool IsValidUtf8(std::string_view bytes);

// Lower-case digits, two a byte.
std::string HexOf(std::string_view bytes);
// Nothing if `text` is not an even number of hexadecimal digits, of either case.
std::optional<std::string> BytesOfHex(std::string_view text);
// The value of one hexadecimal digit, or -1.
int HexDigit(char digit);

// Appends `bytes`, which must be valid UTF-8, as a JSON string with its quotes.
void AppendJsonString(std::string_view bytes, std::string& out);

// A number in JSON; in quotes from 2^53 on, where readers that hold numbers as doubles (JavaScript,
// jq) would change it.
std::string JsonNumber(uint64_t number);

// With everything that could steer a terminal (C0 and C1 controls, bytes that are no UTF-8) as
// \xNN, and \n, \t, \r by these names. Not reversible: a backslash stays one.
std::string OneLine(std::string_view bytes);
// The same, but newlines and tabs stay.
std::string ForTerminal(std::string_view bytes);

// For a message: as it is if it is a plain word, otherwise in double quotes and escaped as OneLine
// does; in either case cut after some 60 bytes.
std::string Quoted(std::string_view bytes);

// Columns that `text` takes: code points; wide and combining characters are not told apart.
size_t DisplayWidth(std::string_view text);

}  // namespace kvd::cli
