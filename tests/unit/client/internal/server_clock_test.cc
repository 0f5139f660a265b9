// What a client knows of its server's clock: never later than it is, and how far it may be off.
#include "client/internal/server_clock.h"

#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE(
    "ServerClock: the estimate is what the answer said, and off by the length of the exchange") {
  ServerClock clock;
  CHECK_FALSE(clock.known());
  clock.Learn(1'000'000, 1'400'000, 5'000'000);
  CHECK(clock.known());
  CHECK(clock.UnixUs(1'400'000) == 5'000'000);
  CHECK(clock.UnixUs(3'400'000) == 5'002'000);
  CHECK(clock.ErrorNs(1'400'000) == 400'000);
  CHECK(clock.ErrorNs(1'001'400'000) == 400'000 + 10'000'000);
}

TEST_CASE(
    "ServerClock: a quicker exchange wins, a slower one when the old one has drifted further") {
  ServerClock clock;
  clock.Learn(0, 100'000, 1'000'000);
  clock.Learn(1'000'000, 2'000'000, 777);  // slower: ignored
  CHECK(clock.UnixUs(2'000'000) == 1'001'900);
  clock.Learn(3'000'000, 3'050'000, 1'003'000);
  CHECK(clock.UnixUs(3'050'000) == 1'003'000);
  clock.Learn(1'000'000'000, 1'000'900'000, 2'000'900);  // by now no worse than the drift
  CHECK(clock.UnixUs(1'000'900'000) == 2'000'900);
  clock.Forget();
  CHECK_FALSE(clock.known());
}

TEST_CASE(
    "ServerClock: another exchange is due after ten seconds, after a slow one at once, and never "
    "twice at a time") {
  ServerClock clock;
  clock.Learn(0, 100'000, 1);
  CHECK_FALSE(clock.due(9'000'000'000, 0));
  CHECK(clock.due(10'000'200'000, 0));
  CHECK_FALSE(clock.due(10'000'200'000, 10'000'100'000));
  ServerClock poor;
  poor.Learn(1, 5'000'001, 1);
  CHECK_FALSE(poor.due(6'000'000, 1));
  CHECK(poor.due(30'000'000, 1));
}

}  // namespace kvd::test
