// Flush: everything that begins with a prefix, stretch after stretch.
#include <string>

#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::ReferenceReader;
using test::TestStore;

TEST_CASE("Shard: Flush deletes what begins with the prefix and nothing else") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  for (int i = 0; i < 20'000; ++i) {
    store.Put((i % 3 == 0 ? "a/" : i % 3 == 1 ? "ab" : "b") + std::to_string(i), "value");
  }
  const uint64_t before = store.shard().stats().items;
  uint64_t flushed = 0;
  uint32_t position = 0;
  do {
    const Shard::Flushed some = store.shard().Flush("a/", position);
    CHECK(some.items <= 512 + 64);
    CHECK((some.next_position == 0 || some.next_position > position));
    flushed += some.items;
    position = some.next_position;
  } while (position != 0);
  CHECK(flushed == 6667);
  CHECK(store.shard().stats().items == before - flushed);
  CHECK_FALSE(reader.Get("a/0").has_value());
  CHECK(reader.Get("ab1").has_value());
  CHECK(reader.Get("b2").has_value());
  KVD_REQUIRE_OK(store.CheckInvariants());

  do {
    position = store.shard().Flush("", position).next_position;
  } while (position != 0);
  CHECK(store.shard().stats().items == 0);
  CHECK(store.shard().stats().heap_used_bytes == 0);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: Flush meets every key that is there all the while, whatever is split meanwhile") {
  TestStore store({.memory_bytes = 64 * kMiB});
  for (int i = 0; i < 10'000; ++i) store.Put("old" + std::to_string(i), "value");
  const uint32_t buckets = store.shard().buckets();
  uint64_t flushed = 0;
  uint32_t position = 0;
  int more = 0;
  do {
    const Shard::Flushed some = store.shard().Flush("old", position);
    flushed += some.items;
    position = some.next_position;
    if (more < 60'000) {
      for (int i = 0; i < 3000; ++i) store.Put("new" + std::to_string(more++), "value");
      while (store.shard().Work()) continue;
    }
  } while (position != 0);
  CHECK(store.shard().buckets() > buckets);
  CHECK(flushed == 10'000);
  CHECK(store.shard().stats().items == 60'000);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

}  // namespace
}  // namespace kvd
