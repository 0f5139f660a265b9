// The server's clock as this client knows it: what expiry is judged by.
//
// Each exchange that carries the server's time bounds it: at the moment the answer came it was at least what the answer says,
// and at most that plus the time since the question was sent (Cristian, "Probabilistic clock synchronization", 1989). The
// estimate is the lower bound, so no item is taken for expired before its time; it is late by the length of the exchange at
// most, plus what the clocks drift apart. The quickest exchange wins until it has grown old.
#pragma once

#include <cstdint>

#include "common/base/clock.h"

namespace kvd {

class ServerClock final : public Clock {
 public:
  // How much one clock may gain on the other, as a fraction of the time that passes: kvd corrects its own after the machine's
  // no faster than that, and crystals are a hundred times better.
  static constexpr int64_t kDriftDivisor = 100;
  // A sample is renewed when it is older than this, one from a slow exchange much sooner.
  static constexpr int64_t kSampleKeptNs = 10'000'000'000;
  static constexpr int64_t kPoorSampleKeptNs = 20'000'000;
  static constexpr int64_t kPoorErrorNs = 500'000;

  // Between `sent_ns` and `received_ns` of the monotonic clock the server's clock said `server_unix_us`.
  void Learn(int64_t sent_ns, int64_t received_ns, int64_t server_unix_us) {
    const int64_t error_ns = received_ns - sent_ns;
    if (known() && error_ns > ErrorNs(received_ns)) return;
    received_ns_ = received_ns;
    server_unix_us_ = server_unix_us;
    error_ns_ = error_ns;
  }

  // A session with another kvd, or over another way, begins: what was known is of no use.
  void Forget() { received_ns_ = 0; }

  bool known() const { return received_ns_ != 0; }
  // Another exchange is due; `asked_ns`: when the last one was begun.
  bool due(int64_t now_ns, int64_t asked_ns) const {
    const int64_t kept_ns = error_ns_ > kPoorErrorNs ? kPoorSampleKeptNs : kSampleKeptNs;
    return now_ns - received_ns_ > kept_ns && now_ns - asked_ns > kPoorSampleKeptNs;
  }

  // The server's clock at `now_ns`, not later than it is, but for drift.
  int64_t UnixUs(int64_t now_ns) const { return server_unix_us_ + (now_ns - received_ns_) / 1000; }

  // As a Clock: this host's monotonic time, and the server's time of day.
  int64_t NowMonotonicNs() const override { return RealClock::Get().NowMonotonicNs(); }
  int64_t NowUnixUs() const override { return UnixUs(NowMonotonicNs()); }

  // How far it may be off.
  int64_t ErrorNs(int64_t now_ns) const { return error_ns_ + (now_ns - received_ns_) / kDriftDivisor; }

 private:
  int64_t received_ns_ = 0;
  int64_t server_unix_us_ = 0;
  int64_t error_ns_ = 0;
};

}  // namespace kvd
