// Compressed input is told from text by no more bytes than that takes.
#include "client/cli/unpacked_source.h"

#include <string>
#include <utility>

#include "client/cli/byte_stream.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using namespace std::string_literals;

// Gives `bytes` and fails the test when more is asked for: a pipe would block.
class PipeSource : public ByteSource {
 public:
  explicit PipeSource(std::string bytes) : bytes_(std::move(bytes)) {}
  absl::StatusOr<size_t> Read(char* into, size_t size) override {
    REQUIRE_FALSE(bytes_.empty());
    const size_t count = bytes_.copy(into, size);
    bytes_.erase(0, count);
    return count;
  }

 private:
  std::string bytes_;
};

TEST_CASE("UnpackedSource: what is compressed is told by its first bytes") {
  const std::pair<std::string, std::string> kinds[] = {
      {"\x1f\x8b"s, "zcat"},
      {"\x1f\x9d"s, "zcat"},
      {"\x28\xb5\x2f\xfd"s, "zstdcat"},
      {"\xfd\x37\x7a\x58\x5a\x00"s, "xzcat"},
      {"BZh91AY&SY"s, "bzcat"},
      {"BZh1\x17\x72\x45\x38\x50\x90"s, "bzcat"},
      {"\x04\x22\x4d\x18"s, "lz4 -dc"},
      {"LZIP\x01"s, "lzip -dc"},
      {"\x89LZO\x00"s, "lzop -dc"},
      {"7z\xbc\xaf\x27\x1c"s, "7z x -so"},
      {"PK\x03\x04"s, "unzip -p"},
  };
  for (const auto& [bytes, unpacker] : kinds) {
    INFO(unpacker);
    PipeSource pipe(bytes);
    CHECK(UnpackedSource(pipe).Unpacker() == unpacker);
  }
}

TEST_CASE("UnpackedSource: text is not waited for, and comes whole") {
  for (const std::string& text :
       {"a"s, "(a\n"s, "\x1fz"s, "\x28\xb5z"s, "BZh\t"s, "BZhx"s, "PK\n"s, "LZIP\t"s, "7z\t"s}) {
    PipeSource pipe(text);
    UnpackedSource source(pipe);
    CHECK(source.Unpacker().empty());
    std::string read;
    while (read.size() < text.size()) {
      char byte = 0;
      KVD_REQUIRE_OK(source.Read(&byte, 1));
      read += byte;
    }
    CHECK(read == text);
  }
}

TEST_CASE("UnpackedSource: what is no text is told by what is there of its first 4 KiB") {
  const auto not_text = [](const std::string& bytes) {
    StringSource all(bytes);
    UnpackedSource source(all);
    CHECK(source.Unpacker().empty());
    const std::string found(source.NotText());
    CHECK((ReadAll(source, 1 << 20).value() == bytes));  // looking takes nothing away
    return found;
  };
  CHECK(not_text("a\0\tb\n"s) == "a byte of zero");
  CHECK(not_text("a\xe9\tb\n"s) == "bytes that are not UTF-8");
  CHECK(not_text("\xff\xff\xff"s) == "bytes that are not UTF-8");
  CHECK(not_text("") == "");
  CHECK(not_text("a\tb\n") == "");
  CHECK(not_text(std::string(8192, 'a') + "\0\xff"s) == "");
  // A character may lie across the end of what is looked at, wherever that is.
  for (const std::string character : {"\u00e9", "\u20ac", "\U0001f600"}) {
    for (size_t before = 4092; before <= 4096; ++before) {
      CHECK(not_text(std::string(before, 'a') + character + "\tb\n") == "");
    }
  }
  // Of a pipe, not more than is there.
  PipeSource pipe("a\tb");
  UnpackedSource source(pipe);
  CHECK(source.Unpacker().empty());
  CHECK(source.NotText().empty());
}

TEST_CASE("UnpackedSource: an end and an error come after the bytes before them") {
  StringSource ended("\x1f");
  UnpackedSource source(ended);
  CHECK(source.Unpacker().empty());
  CHECK(ReadAll(source, 100).value() == "\x1f");

  StringSource failing("\x1f", 1, absl::CancelledError("interrupted"));
  UnpackedSource interrupted(failing);
  CHECK(interrupted.Unpacker().empty());
  char byte = 0;
  CHECK(interrupted.Read(&byte, 1).value() == 1);
  KVD_REQUIRE_CODE(interrupted.Read(&byte, 1), kCancelled);
}

}  // namespace
}  // namespace kvd::cli::test
