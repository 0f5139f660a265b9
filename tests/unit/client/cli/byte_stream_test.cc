#include "client/cli/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/base/unique_fd.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli {
namespace {

TEST_CASE("ByteStream: a file comes back byte for byte, whatever the sizes of the writes") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("file");
  Random random(kvd::test::Seed());
  std::string expected;
  {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    FdSink sink(file.get());
    for (int i = 0; i < 50; ++i) {
      const std::string piece(random.Uniform(i % 10 == 0 ? 200'000 : 3'000),
                              static_cast<char>(random.Next()));
      sink.Write(piece);
      expected += piece;
    }
    sink.Flush();
    CHECK(sink.ok());
  }
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  FdSource source(file.get(), path);
  const auto bytes = ReadAll(source, expected.size());
  KVD_REQUIRE_OK(bytes);
  CHECK((*bytes == expected));
}

TEST_CASE("ByteStream: a sink keeps its first error and drops the rest") {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  FdSink sink(full.get());
  sink.Write("x");
  CHECK(sink.ok());  // buffered
  sink.Flush();
  CHECK(sink.error_number() == ENOSPC);
  sink.Write(std::string(1'000'000, 'x'));
  sink.Flush();
  CHECK(sink.error_number() == ENOSPC);
}

TEST_CASE("ByteStream: a source that cannot be read is named") {
  FdSource source(-1, "standard input");
  char byte = 0;
  const auto count = source.Read(&byte, 1);
  CHECK(kvd::test::MessageOf(count) == "cannot read standard input: Bad file descriptor (errno 9)");
}

TEST_CASE("ByteStream: ReadAll stops an input that does not end") {
  const UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  FdSource source(zero.get(), "/dev/zero");
  const auto bytes = ReadAll(source, 1 << 20);
  KVD_REQUIRE_CODE(bytes, kResourceExhausted);
  CHECK(kvd::test::MessageOf(bytes) == "the input is longer than 1 MiB");
}

// Marks the last byte that it was offered, and counts how often that was overwritten, by a buffer
// that is cleared although nothing has been put there.
class MarkingSource : public ByteSource {
 public:
  MarkingSource(size_t bytes, size_t piece_bytes) : left_(bytes), piece_bytes_(piece_bytes) {}

  absl::StatusOr<size_t> Read(char* into, size_t size) override {
    ++reads;
    char* const last = into + size - 1;
    if (last == marked_ && *last != 'm') ++cleared;
    const size_t count = std::min({size, piece_bytes_, left_});
    std::fill_n(into, count, 'v');
    left_ -= count;
    if (last_moves_.empty() || last_moves_.back() != last) last_moves_.push_back(last);
    marked_ = count < size ? last : nullptr;
    if (marked_ != nullptr) *marked_ = 'm';
    return count;
  }

  // How often the buffer became another one.
  size_t buffers() const { return last_moves_.size(); }
  size_t left() const { return left_; }

  size_t reads = 0;
  size_t cleared = 0;

 private:
  size_t left_;
  const size_t piece_bytes_;
  char* marked_ = nullptr;
  std::vector<const char*> last_moves_;
};

TEST_CASE("ByteStream: what comes in small pieces is not copied or cleared with each of them") {
  constexpr size_t kBytes = 16 << 20;
  constexpr size_t kPiece = 4096;
  MarkingSource source(kBytes, kPiece);
  const auto bytes = ReadAll(source, 1 << 30);
  KVD_REQUIRE_OK(bytes);
  CHECK(bytes->size() == kBytes);
  CHECK(bytes->find_first_not_of('v') == std::string::npos);
  CHECK(source.reads < kBytes / kPiece + 30);
  CHECK(source.cleared == 0);
  CHECK(source.buffers() < 30);  // grown by a half each time
}

TEST_CASE("ByteStream: ReadUpTo takes one byte more than it may, and goes on where it was") {
  MarkingSource source(1000, 64);
  std::string all;
  CHECK(ReadUpTo(source, 99, all).value() == false);
  CHECK(all.size() == 100);
  CHECK(source.left() == 900);
  CHECK(ReadUpTo(source, 1000, all, 1000).value() == true);
  CHECK(all == std::string(1000, 'v'));
}

}  // namespace
}  // namespace kvd::cli
