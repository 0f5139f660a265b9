// The programs of the documentation do what it says.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "client/kv_client.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

// Runs the program that the environment names, in a shell; its output, or a text about how it
// failed.
std::string Run(const char* program, const std::string& arguments, const std::string& before = "") {
  const std::string command = before + std::getenv(program) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  const int status = pclose(pipe);
  return status == 0 ? output : "failed: " + output;
}

struct Fixture {
  Fixture() { KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m", "--max_value=8m"})); }
  KvdProcess kvd;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "Examples: hello stores a value and reads it back") {
  REQUIRE(Run("HELLO", kvd.target()) == "hello\n");
}

TEST_CASE("Examples: each says what is wrong when there is no kvd") {
  for (const char* program : {"HELLO", "BATCH", "EVENT_LOOP", "TENSORS", "THREADS"}) {
    CHECK(Run(program, "shm:/nonexistent/kvd.sock").starts_with("failed: connect: "));
  }
  CHECK(Run("READ_MODIFY_WRITE", "shm:/nonexistent/kvd.sock k w").starts_with("failed: connect: "));
}

TEST_CASE_METHOD(Fixture, "Examples: read_modify_write loses nothing to others who do the same") {
  // Eight at a time, five words each.
  const std::string one = " shopping word$i-$j > /dev/null || echo lost; done & done; wait";
  const std::string all = Run("READ_MODIFY_WRITE", kvd.target() + one,
                              "for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5; do ");
  CHECK(all.empty());
  const std::string list = Run("READ_MODIFY_WRITE", kvd.target() + " shopping word1-1");
  for (int i = 1; i <= 8; ++i) {
    for (int j = 1; j <= 5; ++j) {
      const std::string word = "word" + std::to_string(i) + "-" + std::to_string(j);
      CHECK(list.find(word) != std::string::npos);
      CHECK(list.find(word) == list.rfind(word));
    }
  }
}

TEST_CASE_METHOD(Fixture, "Examples: batch reports each key") {
  CHECK(Run("BATCH", kvd.target()) ==
        "user:7: online\nuser:nobody: no such key\nuser:99: online\n100 stored, 100 deleted\n");
}

TEST_CASE_METHOD(Fixture, "Examples: event_loop stores and reads while it waits for its input") {
  std::string expected;
  for (int i = 1; i <= 3; ++i) expected += "key" + std::to_string(i) + " = v\n";
  CHECK(Run("EVENT_LOOP", kvd.target(), "printf 'key1 v\\nkey2 v\\nkey3 v\\n' | ") == expected);
  // Its end is not the end of the input: this one has more under way than comes back at once.
  const std::string many =
      Run("EVENT_LOOP", kvd.target() + " | grep -c ' = x$'", "seq 2000 | sed 's/$/ x/' | ");
  CHECK(many == "2000\n");
  // What epoll does not take would never be read.
  CHECK(Run("EVENT_LOOP", kvd.target() + " < /dev/null")
            .starts_with("failed: cannot wait for standard input"));
}

TEST_CASE_METHOD(Fixture, "Examples: threads find what another one has written where it lies") {
  std::string expected;
  for (int i = 0; i < 4; ++i) {
    expected +=
        "thread " + std::to_string(i) + ": 1000 found, most of them where they were known to lie\n";
  }
  CHECK(Run("THREADS", kvd.target()) == expected);
}

TEST_CASE_METHOD(Fixture, "Examples: tensors come back where they belong") {
  CHECK(Run("TENSORS", kvd.target()) ==
        "model:7/layer:0 begins with 0\nmodel:7/layer:1 begins with 1\n"
        "model:7/layer:2 begins with 2\nmodel:7/layer:3 begins with 3\n");
  const auto client = Client::Connect(kvd.target());
  KVD_REQUIRE_OK(client.status());
  const absl::StatusOr<std::string> layer = (*client)->Get("model:7/layer:3");
  KVD_REQUIRE_OK(layer.status());
  CHECK(layer->size() == size_t{4} << 20);
}

}  // namespace kvd::test
