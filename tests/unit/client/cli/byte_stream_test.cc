#include "client/cli/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

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

}  // namespace
}  // namespace kvd::cli
