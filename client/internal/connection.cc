#include "client/internal/connection.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

// An attempt to connect gets this long even if the operation that waits for it has less: otherwise
// a client whose deadlines are all shorter than that would never get anywhere.
constexpr int64_t kConnectMinNs = 50'000'000;
constexpr int64_t kLookForBetterNs = 1'000'000'000;
constexpr int64_t kLastWordNs = 20'000'000;

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

void SleepUntil(int64_t until_ns) {
  const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

}  // namespace

Connection::~Connection() {
  if (session_ == nullptr) return;
  requests_.Detach();
  session_.reset();
}

absl::Status Connection::Open(int64_t deadline_ns) {
  const int64_t asked_ns = NowNs();
  KVD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, connector_.Connect(clock_, deadline_ns));
  Begin(std::move(session), asked_ns);
  return absl::OkStatus();
}

void Connection::Begin(std::unique_ptr<Session> session, int64_t asked_ns) {
  const Welcome& welcome = session->channel->welcome();
  if (welcome.incarnation != incarnation_) clock_.Forget();
  clock_.Learn(asked_ns, NowNs(), static_cast<int64_t>(welcome.server_unix_us));
  const bool same = welcome.incarnation == incarnation_;
  incarnation_ = welcome.incarnation;
  hits_.Enable((welcome.flags & kWelcomeWantsHits) != 0);
  next_look_ns_ = NowNs() + kLookForBetterNs;
  session_ = std::move(session);
  ++sessions_;
  listener_.SessionBegins(same);
  requests_.Attach(*session_->channel, session_->registrar,
                   same && (welcome.flags & kWelcomeRepliesKept) != 0);
}

absl::Status Connection::TryConnect(int64_t deadline_ns) {
  const int64_t asked_ns = NowNs();
  // Within the back-off none is made.
  const bool attempted = connector_.next_attempt_ns() <= asked_ns;
  absl::StatusOr<std::unique_ptr<Session>> session =
      connector_.Reconnect(clock_, std::max(deadline_ns, asked_ns + kConnectMinNs));
  if (!session.ok()) {
    if (attempted) listener_.ConnectionFailed(session.status());
    return session.status();
  }
  ++reconnects_;
  Begin(*std::move(session), asked_ns);
  return absl::OkStatus();
}

absl::Status Connection::Ensure(int64_t deadline_ns) {
  while (session_ == nullptr) {
    const absl::Status waited = Wait(deadline_ns);
    if (waited.ok()) continue;
    return connector_.last_error().ok() ? waited : connector_.last_error();
  }
  return absl::OkStatus();
}

absl::Status Connection::Wait(int64_t deadline_ns) {
  if (session_ != nullptr) {
    const absl::Status waited = session_->channel->Wait(deadline_ns);
    if (waited.ok() || absl::IsDeadlineExceeded(waited)) return waited;
    // An answer may have come together with the end of the session.
    Advance();
    EndIfBroken();
    return absl::OkStatus();
  }
  const int64_t now_ns = NowNs();
  if (connector_.next_attempt_ns() > now_ns && wait_for_server_) {
    if (now_ns >= deadline_ns) return absl::DeadlineExceededError("no server in time");
    SleepUntil(std::min(deadline_ns, connector_.next_attempt_ns()));
    return absl::OkStatus();
  }
  const absl::Status made = TryConnect(deadline_ns);
  if (made.ok()) return made;
  // Also one whose handshake broke off, whatever that looked like: only a server that refuses will
  // refuse again.
  const bool worth_another = absl::IsUnavailable(made) || absl::IsDeadlineExceeded(made) ||
                             absl::IsDataLoss(made) || absl::IsInternal(made);
  if (!worth_another || !wait_for_server_) {
    requests_.FailAll(made);
    return made;
  }
  return NowNs() >= deadline_ns ? absl::DeadlineExceededError("no server in time")
                                : absl::OkStatus();
}

void Connection::Advance() {
  if (session_ == nullptr) return;
  const absl::Status read = session_->reads.Pump();
  session_->reader.ForgetIfDone();
  const absl::Status requested = requests_.Pump();
  TakeClock();
  if (read.ok() && requested.ok() && !broke_format_) [[likely]]
    return;
  EndAfter(requested);
}

void Connection::EndAfter(const absl::Status& requested) {
  if (!absl::IsDataLoss(requested) && !broke_format_) {
    EndIfBroken();
    return;
  }
  listener_.ConnectionFailed(absl::IsDataLoss(requested)
                                 ? requested
                                 : absl::DataLossError("the server's reply broke the format"));
  End();
}

void Connection::PumpRequests() {
  if (session_ == nullptr) return;
  broke_format_ = absl::IsDataLoss(requests_.Pump()) || broke_format_;
  TakeClock();
}

bool Connection::EndIfBroken() {
  if (session_ == nullptr || session_->channel->status().ok()) return false;
  listener_.ConnectionFailed(session_->channel->status());
  End();
  return true;
}

void Connection::End() {
  listener_.SessionEnds(*session_);
  requests_.Detach();
  session_.reset();
  broke_format_ = false;
}

void Connection::ConsiderBetterTarget() {
  if (session_ == nullptr || session_->target_index == 0 || !requests_.idle()) return;
  const int64_t now_ns = NowNs();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookForBetterNs;
  auto better = connector_.ConnectBefore(session_->target_index, clock_, now_ns + kConnectMinNs);
  if (!better.ok()) return;
  End();
  ++reconnects_;
  Begin(*std::move(better), now_ns);
}

void Connection::ReportHits() {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kHits);
  requests_.Notify(header, {}, hits_.Take());
  PumpRequests();
}

bool Connection::Report(const ReportedCounts& counts) {
  const std::string_view hashes = hits_.Take();
  std::array<char, sizeof(counts) + HitSampler::kBatch * sizeof(uint64_t)> payload;
  std::memcpy(payload.data(), &counts, sizeof(counts));
  hashes.copy(payload.data() + sizeof(counts), hashes.size());
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kHits);
  header.argument = kReportedCounts;
  const bool sent = requests_.Notify(header, {}, {payload.data(), sizeof(counts) + hashes.size()});
  PumpRequests();
  return sent;
}

bool Connection::TellCounts(const ReportedCounts& counts) {
  // The next operation is to find one.
  if (session_ == nullptr || requests_.credits_free() < 2) return false;
  return Report(counts);
}

void Connection::TellLast(const ReportedCounts* counts) {
  if (session_ == nullptr || (counts == nullptr && !hits_.anything_noted())) return;
  const bool was_idle = requests_.idle();
  if (counts == nullptr) {
    ReportHits();
  } else {
    Report(*counts);
  }
  const int64_t deadline_ns = NowNs() + kLastWordNs;
  while (was_idle && session_ != nullptr && !requests_.idle() && NowNs() < deadline_ns) {
    if (!session_->channel->Wait(deadline_ns).ok()) return;
    Advance();
  }
}

void Connection::RefreshClock() {
  if (clock_asked_ || session_ == nullptr) return;
  const int64_t now_ns = NowNs();
  if (!clock_.due(now_ns, clock_asked_ns_)) return;
  clock_request_.header.opcode = static_cast<uint8_t>(Opcode::kPing);
  clock_asked_ns_ = now_ns;
  clock_asked_ = true;
  requests_.Submit(clock_request_);
}

void Connection::TakeClock() {
  if (!clock_asked_ || !clock_request_.done) return;
  if (clock_request_.status.ok()) {
    clock_.Learn(clock_asked_ns_, NowNs(), static_cast<int64_t>(clock_request_.reply.result));
  }
  clock_asked_ = false;
}

}  // namespace kvd
