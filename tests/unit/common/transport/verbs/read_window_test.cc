// READs are cut into pieces, at most `depth` are under way, and each completes once, in order, with
// its own verdict.
#include "common/transport/verbs/read_window.h"

#include <deque>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::verbs {
namespace {

struct UnderWay {
  uint64_t read;
  uint64_t bytes;
};

}  // namespace

TEST_CASE("ReadWindow: a buffer may be written until every READ into it is done, posted or not") {
  std::vector<std::byte> bytes(64);
  const auto buffer = std::span<const std::byte>(bytes).first(16);
  const auto other = std::span<const std::byte>(bytes).subspan(32, 32);
  ReadWindow window(1, 8, 16);
  CHECK_FALSE(window.MayStillWrite(buffer));
  window.Add(ReadOp{RegionOffset{0}, 16, bytes.data(), 1}, 5);
  CHECK(window.MayStillWrite(buffer));  // not posted yet
  CHECK_FALSE(window.MayStillWrite(other));
  window.Next();
  window.Done(true);
  CHECK(window.MayStillWrite(buffer));  // half of it
  window.Next();
  CHECK(window.MayStillWrite(buffer));
  window.Add(ReadOp{RegionOffset{0}, 8, bytes.data() + 32, 2}, 5);
  window.Done(true);
  CHECK_FALSE(window.MayStillWrite(buffer));  // though nobody has polled it
  CHECK(window.MayStillWrite(other));
  window.Abandon();
  CHECK_FALSE(window.MayStillWrite(other));
}

TEST_CASE("ReadWindow: random READs over random depths arrive whole, in order, within the depth") {
  Random random(test::Seed());
  for (int round = 0; round < 300; ++round) {
    const auto depth = static_cast<uint32_t>(random.Between(1, 8));
    const uint64_t piece_bytes = random.Between(1, 4) * 8;
    ReadWindow window(depth, piece_bytes, 16);
    std::vector<uint64_t> lengths;
    std::vector<uint64_t> arrived;
    std::deque<uint64_t> under_way;  // bytes of each piece
    uint64_t next_read = 0;          // to which the next piece belongs
    uint64_t polled = 0;
    std::deque<uint64_t> owner;
    std::vector<std::byte> buffer(256);
    while (polled < 200) {
      if (lengths.size() < 200 && window.room() > 0 && random.OneIn(2)) {
        const uint64_t length = random.Uniform(12) * 8;
        window.Add(ReadOp{RegionOffset{0}, length, buffer.data(), lengths.size()}, 5);
        lengths.push_back(length);
        arrived.push_back(0);
      }
      if (window.can_post() && random.OneIn(2)) {
        const ReadWindow::Piece piece = window.Next();
        REQUIRE(piece.bytes <= piece_bytes);
        REQUIRE(piece.key == 5);
        REQUIRE(piece.offset == static_cast<uint64_t>(piece.into - buffer.data()));
        under_way.push_back(piece.bytes);
        owner.push_back(next_read);
        arrived[next_read] += piece.bytes;
        REQUIRE(under_way.size() <= depth);
        if (arrived[next_read] == lengths[next_read]) ++next_read;
      }
      if (!under_way.empty() && random.OneIn(2)) {
        window.Done(true);
        under_way.pop_front();
        owner.pop_front();
      }
      ReadCompletion done[3];
      const size_t got = window.Poll(done);
      for (size_t i = 0; i < got; ++i) {
        REQUIRE(done[i].id == polled);
        REQUIRE(done[i].ok);
        REQUIRE(arrived[polled] == lengths[polled]);
        REQUIRE((owner.empty() || owner.front() > polled));
        ++polled;
      }
    }
  }
}

TEST_CASE("ReadWindow: one failed piece fails its READ only") {
  ReadWindow window(4, 8, 4);
  window.Add(ReadOp{RegionOffset{0}, 16, nullptr, 1}, 0);
  window.Add(ReadOp{RegionOffset{0}, 8, nullptr, 2}, 0);
  while (window.can_post()) window.Next();
  window.Done(true);
  window.Done(false);
  window.Done(true);
  ReadCompletion done[2];
  REQUIRE(window.Poll(done) == 2);
  CHECK_FALSE(done[0].ok);
  CHECK(done[1].ok);
}

TEST_CASE("ReadWindow: once abandoned, nothing ends before what is under way has ended") {
  ReadWindow window(2, 8, 8);
  for (uint64_t id = 0; id < 4; ++id) window.Add(ReadOp{RegionOffset{0}, 16, nullptr, id}, 0);
  window.Next();
  window.Next();
  window.Done(true);
  window.Next();  // the first piece of the second READ
  window.Abandon();
  CHECK_FALSE(window.can_post());
  ReadCompletion done[8];
  CHECK(window.Poll(done) == 0);
  window.Done(false);
  REQUIRE(window.Poll(done) == 1);
  CHECK_FALSE(done[0].ok);
  window.Done(false);
  REQUIRE(window.Poll(done) == 3);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(done[i].ok);
}

TEST_CASE("ReadWindow: of a READ that is given up no more is posted, and those behind it go on") {
  ReadWindow window(2, 8, 8);
  window.Add(ReadOp{RegionOffset{0}, 800, nullptr, 1}, 0);
  window.Add(ReadOp{RegionOffset{0}, 800, nullptr, 2}, 0);
  window.Add(ReadOp{RegionOffset{4096}, 8, nullptr, 3}, 0);
  window.Next();
  window.Next();
  window.GiveUp(2);  // nothing of it has been posted
  window.GiveUp(1);
  window.GiveUp(7);  // there is none
  ReadCompletion done[8];
  CHECK(window.Poll(done) == 0);
  window.Done(true);
  REQUIRE(window.can_post());
  CHECK(window.Next().offset == 4096);
  CHECK_FALSE(window.can_post());
  window.GiveUp(3);  // it is on its way, wholly
  CHECK(window.Poll(done) == 0);
  window.Done(true);
  REQUIRE(window.Poll(done) == 2);
  CHECK(done[0].id == 1);
  CHECK_FALSE(done[0].ok);
  CHECK(done[1].id == 2);
  CHECK_FALSE(done[1].ok);
  window.Done(true);
  REQUIRE(window.Poll(done) == 1);
  CHECK(done[0].id == 3);
  CHECK(done[0].ok);
  CHECK(window.room() == 8);
}

TEST_CASE("ReadWindow: room counts what has not been polled") {
  ReadWindow window(1, 8, 2);
  window.Add(ReadOp{RegionOffset{0}, 8, nullptr, 1}, 0);
  window.Add(ReadOp{RegionOffset{0}, 8, nullptr, 2}, 0);
  CHECK(window.room() == 0);
  window.Next();
  window.Done(true);
  CHECK(window.room() == 0);
  ReadCompletion done[2];
  CHECK(window.Poll(done) == 1);
  CHECK(window.room() == 1);
}

}  // namespace kvd::verbs
