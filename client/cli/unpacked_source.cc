#include "client/cli/unpacked_source.h"

#include <utility>

namespace kvd::cli {
namespace {

struct Magic {
  std::string_view bytes;
  std::string_view unpacker;
};

// None of them begins a line of text.
constexpr Magic kMagics[] = {
    {{"\x1f\x8b", 2}, "zcat"},
    {{"\x28\xb5\x2f\xfd", 4}, "zstdcat"},
    {{"\xfd\x37\x7a\x58\x5a\x00", 6}, "xzcat"},
};

}  // namespace

std::string_view UnpackedSource::Unpacker() {
  while (true) {
    bool undecided = false;
    for (const Magic& magic : kMagics) {
      if (begin_.starts_with(magic.bytes)) return magic.unpacker;
      undecided = undecided || magic.bytes.starts_with(begin_);
    }
    if (!undecided) return "";
    char byte = 0;
    last_ = source_.Read(&byte, 1);
    if (!last_.ok() || *last_ == 0) return "";
    begin_ += byte;
  }
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
