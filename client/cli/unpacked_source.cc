#include "client/cli/unpacked_source.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "client/cli/text.h"

namespace kvd::cli {
namespace {

struct Magic {
  std::string_view bytes;  // ? stands for any digit
  std::string_view unpacker;
};

// None of them begins a line of text that anybody would write.
constexpr Magic kMagics[] = {
    {{"\x1f\x8b", 2}, "zcat"},
    {{"\x1f\x9d", 2}, "zcat"},
    {{"\x28\xb5\x2f\xfd", 4}, "zstdcat"},
    {{"\xfd\x37\x7a\x58\x5a\x00", 6}, "xzcat"},
    {{"BZh?\x31\x41\x59\x26\x53\x59", 10}, "bzcat"},
    {{"BZh?\x17\x72\x45\x38\x50\x90", 10}, "bzcat"},  // of an empty file
    {{"\x04\x22\x4d\x18", 4}, "lz4 -dc"},
    {{"LZIP\x01", 5}, "lzip -dc"},
    {{"\x89LZO\x00", 5}, "lzop -dc"},
    {{"7z\xbc\xaf\x27\x1c", 6}, "7z x -so"},
    {{"PK\x03\x04", 4}, "unzip -p"},
};

bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }

// As far as both go.
bool Agree(std::string_view magic, std::string_view begin) {
  for (size_t i = 0; i < std::min(magic.size(), begin.size()); ++i) {
    if (magic[i] != begin[i] && !(magic[i] == '?' && IsDigit(begin[i]))) return false;
  }
  return true;
}

// Without a character at the end that may be cut off in its middle.
std::string_view WholeCharacters(std::string_view text) {
  for (size_t cut = 1; cut <= std::min<size_t>(3, text.size()); ++cut) {
    const auto byte = static_cast<uint8_t>(text[text.size() - cut]);
    if (byte >= 0xC2 && byte <= 0xF4) {
      const size_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
      return cut < length ? text.substr(0, text.size() - cut) : text;
    }
    if ((byte & 0xC0) != 0x80) break;
  }
  return text;
}

}  // namespace

std::string_view UnpackedSource::Unpacker() {
  while (true) {
    bool undecided = false;
    for (const Magic& magic : kMagics) {
      if (!Agree(magic.bytes, begin_)) continue;
      if (begin_.size() >= magic.bytes.size()) return magic.unpacker;
      undecided = true;
    }
    if (!undecided) return "";
    char byte = 0;
    last_ = source_.Read(&byte, 1);
    if (!last_.ok() || *last_ == 0) return "";
    begin_ += byte;
  }
}

std::string_view UnpackedSource::NotText() {
  constexpr size_t kLookedAtBytes = 4096;
  if (last_.ok() && *last_ != 0) {
    const size_t before = begin_.size();
    begin_.resize(kLookedAtBytes);
    last_ = source_.Read(&begin_[before], kLookedAtBytes - before);
    begin_.resize(before + last_.value_or(0));
  }
  const size_t first = begin_.find_first_not_of("\r\n");
  if (first != std::string::npos && begin_[first] == '{') return "";
  if (begin_.find('\0') != std::string::npos) return "a byte of zero";
  if (!IsValidUtf8(WholeCharacters(begin_))) return "bytes that are not UTF-8";
  return "";
}

absl::StatusOr<size_t> UnpackedSource::Read(char* into, size_t size) {
  if (handed_out_ < begin_.size()) {
    const size_t count = begin_.copy(into, size, handed_out_);
    handed_out_ += count;
    return count;
  }
  if (!last_.ok()) return std::exchange(last_, absl::StatusOr<size_t>(1));
  return *last_ == 0 ? 0 : source_.Read(into, size);
}

}  // namespace kvd::cli
