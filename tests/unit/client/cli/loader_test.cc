#include "client/cli/loader.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

struct Loaded {
  absl::Status status;
  LoadCounts counts;
  bool input_failed = false;
  uint64_t line_number = 0;
  std::vector<std::pair<uint64_t, std::string>> errors;
};

Loaded Load(FakeServer& server, std::string input, Loader::Options options = {},
            absl::Status input_error = absl::OkStatus(), uint64_t lines_max = UINT64_MAX) {
  StringSource source(std::move(input), SIZE_MAX, std::move(input_error));
  LineReader lines(source, 1000);
  FakeStore store(server);
  Loader loader(store, lines, std::move(options));
  Loaded loaded;
  uint64_t lines_seen = 0;
  loaded.status = loader.Run(
      [&](uint64_t line, std::string_view reason) { loaded.errors.emplace_back(line, reason); },
      [&](const LoadCounts&) { return ++lines_seen < lines_max; });
  loaded.counts = loader.counts();
  loaded.input_failed = loader.input_failed();
  loaded.line_number = loader.line_number();
  return loaded;
}

TEST_CASE("Loader: the first line tells the format; blank lines count for nothing") {
  FakeServer server;
  Loaded loaded =
      Load(server, "\n \r\n{\"key\":\"a\",\"value\":\"1\"}\r\n{\"key\":\"b\",\"value\":\"2\"}");
  KVD_REQUIRE_OK(loaded.status);
  CHECK(loaded.counts.items == 2);
  CHECK(loaded.counts.item_bytes == 4);
  CHECK(loaded.errors.empty());
  loaded = Load(server, "\xEF\xBB\xBFkey\tvalue\n");
  CHECK(loaded.counts.items == 1);
  CHECK(server.items.at("key").first == "value");
  CHECK(Load(server, "").counts.items == 0);
}

TEST_CASE("Loader: a given format holds, whatever the first line looks like") {
  FakeServer server;
  const Loaded loaded = Load(server, "{a;b\n", {ItemFormat::kDelimited, ";"});
  CHECK(loaded.counts.items == 1);
  CHECK(server.items.contains("{a"));
}

TEST_CASE("Loader: what is wrong is told with its line, and the rest is loaded") {
  FakeServer server;
  server.put_errors["big"] = absl::OutOfRangeError("too large");
  server.put_errors["full"] = absl::ResourceExhaustedError("the region is full");
  const Loaded loaded =
      Load(server, "a\t1\nbad\nbig\t2\n\tno key\nfull\t3\n" + std::string(2000, 'x') + "\nz\t4\n");
  KVD_REQUIRE_OK(loaded.status);
  CHECK(loaded.counts.items == 2);
  CHECK(loaded.counts.bad_lines == 3);
  CHECK(loaded.counts.refused == 2);
  using Errors = std::vector<std::pair<uint64_t, std::string>>;
  CHECK(loaded.errors ==
        Errors{{2, "no TAB between key and value"},
               {3, "key big: too large"},
               {4, "key \"\": keys have 1 to 4096 bytes"},
               {6, "longer than 1000 bytes; give a larger --max_line to load it"}});
  CHECK(server.items.contains("z"));
  CHECK(loaded.counts.no_room == 1);
}

TEST_CASE("Loader: many are under way at once, and of one key never two") {
  FakeServer server;
  std::string input;
  for (int i = 0; i < 400; ++i) input += std::to_string(i) + "\tv\n";
  Loaded loaded = Load(server, input);
  CHECK(loaded.counts.items == 400);
  CHECK(server.started_at_once_max == 400);
  // The fake does what is under way in the reverse order; the last line still comes last.
  loaded = Load(server, "k\t1\nx\t1\nk\t2\nk\t3\n");
  CHECK(loaded.counts.items == 4);
  CHECK(server.items.at("k").first == "3");
}

TEST_CASE("Loader: what is under way is bounded") {
  FakeServer server;
  std::string input;
  for (int i = 0; i < 3000; ++i) input += std::to_string(i) + "\t\n";
  CHECK(Load(server, input).counts.items == 3000);
  CHECK(server.started_at_once_max <= 512);
}

TEST_CASE("Loader: nothing stays under way while the input makes it wait") {
  FakeServer server;
  StringSource source("a\t1\nb\t2\nc\t3\n", 4);  // a line a read
  LineReader lines(source, 1000);
  FakeStore store(server);
  Loader loader(store, lines, {});
  KVD_REQUIRE_OK(
      loader.Run([](uint64_t, std::string_view) {}, [](const LoadCounts&) { return true; }));
  CHECK(loader.counts().items == 3);
  CHECK(server.started_at_once_max == 1);
}

TEST_CASE("Loader: ends where going on would be of no use") {
  FakeServer server;
  server.put_errors["b"] = absl::UnavailableError("gone");
  Loaded loaded = Load(server, "a\t1\nb\t2\nc\t3\n");
  KVD_REQUIRE_CODE(loaded.status, kUnavailable);
  CHECK_FALSE(loaded.input_failed);
  CHECK(loaded.line_number == 2);
  CHECK(loaded.counts.items == 2);  // what was under way beside it took effect
  loaded = Load(server, "a\t1\n", {}, absl::InternalError("disk"));
  KVD_REQUIRE_CODE(loaded.status, kInternal);
  CHECK(loaded.input_failed);
  CHECK(loaded.counts.items == 1);
  loaded = Load(server, "a\t1\nc\t2\nd\t3\n", {}, absl::OkStatus(), 2);
  KVD_REQUIRE_CODE(loaded.status, kCancelled);
  CHECK(loaded.counts.items == 2);
}

}  // namespace
}  // namespace kvd::cli::test
