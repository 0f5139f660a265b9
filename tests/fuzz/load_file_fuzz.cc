// Files that kvcli loads: any bytes in any pieces become items or errors with a line, and an item
// survives being written and read again.
#include <string>

#include "client/cli/jsonl_codec.h"
#include "client/cli/line_reader.h"
#include "client/cli/tsv_codec.h"
#include "client/cli/unpacked_source.h"
#include "tests/fuzz/fuzz.h"

namespace kvd::fuzz {
namespace {

constexpr size_t kLineBytesMax = 512;

// Gives its bytes in pieces of `piece`.
class Pieces final : public cli::ByteSource {
 public:
  Pieces(std::string_view bytes, size_t piece) : rest_(bytes), piece_(piece) {}
  absl::StatusOr<size_t> Read(char* into, size_t size) override {
    const size_t count = std::min({size, piece_, rest_.size()});
    std::memcpy(into, rest_.data(), count);
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
  size_t piece_;
};

void RoundTrip(const cli::Item& item, bool json) {
  std::string line;
  if (json) {
    cli::AppendJsonLine(item.key, item.value, item.traits, line);
  } else {
    cli::AppendTsvLine(item.key, item.value, item.traits, line);
  }
  Require(!line.empty() && line.find('\n') == line.size() - 1, "an item is one line");
  line.pop_back();
  cli::Item again;
  Require((json ? cli::ParseJsonLine(line, again) : cli::ParseTsvLine(line, again)).ok(),
          "what is written can be read");
  Require(again.key == item.key && again.value == item.value && again.traits == item.traits,
          "and is the same");
}

void Parse(std::string_view line) {
  for (const bool json : {false, true}) {
    cli::Item item;
    const absl::Status status =
        json ? cli::ParseJsonLine(line, item) : cli::ParseTsvLine(line, item);
    if (!status.ok()) {
      Require(!status.message().empty(), "an error says what");
      continue;
    }
    RoundTrip(item, true);
    RoundTrip(item, false);
  }
}

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvd;  // NOLINT
  fuzz::Feed feed(data, size);
  const size_t piece = 1 + feed.Take<uint8_t>();
  const std::string_view text = feed.RestAsText();
  fuzz::Pieces pieces(text, piece);
  cli::UnpackedSource source(pieces);
  (void)source.Unpacker();
  (void)source.NotText();
  cli::LineReader reader(source, fuzz::kLineBytesMax);
  while (true) {
    const auto outcome = reader.Next();
    fuzz::Require(outcome.ok(), "a source without errors has none");
    if (*outcome == cli::LineReader::Outcome::kEnd) break;
    if (*outcome == cli::LineReader::Outcome::kTooLong) continue;
    fuzz::Require(reader.line().size() <= fuzz::kLineBytesMax, "a line is not longer than allowed");
    fuzz::Parse(reader.line());
  }
  fuzz::Require(reader.bytes_taken() == text.size(), "no byte is passed over");
  return 0;
}
