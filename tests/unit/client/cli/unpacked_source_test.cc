// Compressed input is told from text by no more bytes than that takes.
#include "client/cli/unpacked_source.h"

#include <string>

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
  for (const auto& [bytes, unpacker] :
       {std::pair{"\x1f\x8b"s, "zcat"}, {"\x28\xb5\x2f\xfd"s, "zstdcat"}}) {
    PipeSource pipe(bytes);
    CHECK(UnpackedSource(pipe).Unpacker() == unpacker);
  }
}

TEST_CASE("UnpackedSource: text is not waited for, and comes whole") {
  for (const std::string& text : {"a"s, "(a\n"s, "\x1fz"s, "\x28\xb5z"s}) {
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
