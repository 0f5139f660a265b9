// HITS: counts and hashes, from whoever sends them.
#include "common/protocol/client_report.h"

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

std::string Words(const std::vector<uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t)};
}

RequestView Hits(uint64_t counts, std::string_view value) {
  RequestView request{};
  request.header.opcode = static_cast<uint8_t>(Opcode::kHits);
  request.header.argument = counts;
  request.header.value_len = value.size();
  request.value = value;
  return request;
}

}  // namespace

TEST_CASE("HITS: counts come first, in their order, and hashes after them") {
  const std::string value = Words({1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101});
  ClientReport report;
  REQUIRE(DecodeReport(Hits(9, value), report) == nullptr);
  CHECK(report.counts.gets == 1);
  CHECK(report.counts.hits == 2);
  CHECK(report.counts.misses == 3);
  CHECK(report.counts.reads == 4);
  CHECK(report.counts.read_bytes == 5);
  CHECK(report.counts.torn_reads == 6);
  CHECK(report.counts.retries == 7);
  CHECK(report.counts.fallbacks == 8);
  CHECK(report.counts.read_errors == 9);
  CHECK(report.hashes == Words({100, 101}));
}

TEST_CASE("HITS: without counts all are hashes, as of a client that knows of none") {
  const std::string value = Words({1, 2});
  ClientReport report;
  REQUIRE(DecodeReport(Hits(0, value), report) == nullptr);
  CHECK(report.counts.gets == 0);
  CHECK(report.hashes == value);
  REQUIRE(DecodeReport(Hits(0, {}), report) == nullptr);
  CHECK(report.hashes.empty());
}

TEST_CASE("HITS: fewer counts than are known, and more") {
  ClientReport report;
  const std::string few = Words({1, 2, 100});
  REQUIRE(DecodeReport(Hits(2, few), report) == nullptr);
  CHECK(report.counts.hits == 2);
  CHECK(report.counts.misses == 0);
  CHECK(report.hashes == Words({100}));
  const std::string many = Words({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 100});
  REQUIRE(DecodeReport(Hits(11, many), report) == nullptr);
  CHECK(report.counts.read_errors == 9);
  CHECK(report.hashes == Words({100}));
}

TEST_CASE("HITS: what is cut off, or says that it has more than it has, is refused") {
  const std::string value = Words({1, 2, 3});
  ClientReport report;
  for (const uint64_t counts : {uint64_t{4}, uint64_t{1} << 32, uint64_t{1} << 61, UINT64_MAX}) {
    CHECK(DecodeReport(Hits(counts, value), report) != nullptr);
    CHECK(report.counts.gets == 0);
    CHECK(report.hashes.empty());
  }
  CHECK(DecodeReport(Hits(1, {}), report) != nullptr);
  CHECK(DecodeReport(Hits(1, std::string_view(value).substr(0, 23)), report) != nullptr);
  CHECK(report.counts.gets == 0);
}

}  // namespace kvd::test
