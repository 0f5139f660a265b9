#include "server/poller/mailbox.h"

#include <cstdint>
#include <thread>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct Letter : MailboxNode {
  uint64_t sender = 0;
  uint64_t number = 0;
};

}  // namespace

TEST_CASE("Mailbox: gives back what was posted, in order, and is empty then") {
  Mailbox mailbox;
  CHECK(mailbox.empty());
  CHECK(mailbox.Take() == nullptr);
  std::vector<Letter> letters(5);
  for (int round = 0; round < 3; ++round) {
    for (Letter& letter : letters) mailbox.Post(&letter);
    CHECK_FALSE(mailbox.empty());
    for (Letter& letter : letters) REQUIRE(mailbox.Take() == &letter);
    CHECK(mailbox.Take() == nullptr);
    CHECK(mailbox.empty());
  }
}

TEST_CASE("Mailbox: with several posters nothing is lost and each one's order is kept") {
  constexpr uint64_t kPosters = 3;
  constexpr uint64_t kLetters = 50'000;
  Mailbox mailbox;
  std::vector<std::vector<Letter>> letters(kPosters);
  for (auto& own : letters) own = std::vector<Letter>(kLetters);
  std::vector<std::thread> posters;
  for (uint64_t sender = 0; sender < kPosters; ++sender) {
    posters.emplace_back([&, sender] {
      for (uint64_t i = 0; i < kLetters; ++i) {
        letters[sender][i].sender = sender;
        letters[sender][i].number = i;
        mailbox.Post(&letters[sender][i]);
      }
    });
  }
  uint64_t next[kPosters] = {};
  bool in_order = true;
  for (uint64_t taken = 0; taken < kPosters * kLetters;) {
    auto* letter = static_cast<Letter*>(mailbox.Take());
    if (letter == nullptr) continue;
    in_order = in_order && letter->number == next[letter->sender]++;
    ++taken;
  }
  for (std::thread& poster : posters) poster.join();
  CHECK(in_order);
  CHECK(mailbox.empty());
}

}  // namespace kvd::test
