// A client object's connection over all its sessions: the present one, its requests, and how it is
// replaced when it breaks.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/connector.h"
#include "client/internal/hit_sampler.h"
#include "client/internal/request_queue.h"
#include "client/internal/server_clock.h"
#include "client/internal/session.h"
#include "client/kv_client.h"
#include "common/layout/hello.h"
#include "common/layout/reported_counts.h"

namespace kvd {

// One thread at a time.
class Connection {
 public:
  // What a session was doing when it ends.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The session is about to be destroyed, with all that it allocated and posted.
    virtual void SessionEnds(Session& session) = 0;
    // There is one again. `same_server`: with the same run of the server as the last.
    virtual void SessionBegins(bool same_server) = 0;
    // A session broke, or could not be made. It must not use the connection.
    virtual void ConnectionFailed(const absl::Status& cause) = 0;
  };

  // `listener` outlives the connection.
  Connection(Connector connector, const ClientOptions& options, Listener& listener)
      : connector_(std::move(connector)),
        wait_for_server_(options.wait_for_server),
        listener_(listener) {}

  ~Connection();

  // The first session: one attempt for each target. Errors as Connector::Connect.
  absl::Status Open(int64_t deadline_ns);

  // Null between sessions.
  Session* session() { return session_.get(); }
  const Session* session() const { return session_.get(); }

  RequestQueue& requests() { return requests_; }
  const RequestQueue& requests() const { return requests_; }
  const Connector& connector() const { return connector_; }
  const ServerClock& clock() const { return clock_; }
  bool clock_asked() const { return clock_asked_; }
  uint64_t reconnects() const { return reconnects_; }
  // As the server of the last session said.
  bool server_evicts() const { return hits_.wanted(); }
  // Sessions so far: which one the present one is.
  uint64_t sessions() const { return sessions_; }

  // Sees to it that there is a session. Ok; or why there is none: after one attempt, or at the
  // deadline if the client waits for its server.
  absl::Status Ensure(int64_t deadline_ns);

  // Moves READs and requests on, without blocking; ends a session that broke. Afterwards session()
  // may be null.
  void Advance();

  // Moves requests on without ending the session, whatever is found out: for a caller that still
  // holds bytes of the session's.
  void PumpRequests();

  // Blocks until there may be something to Advance, or the deadline. Between sessions it tries to
  // make one, or waits until it may try again. DeadlineExceeded; an error of Connector::Reconnect:
  // there is no session, and to wait for one is no use or not wanted (everything that was waiting
  // for it has failed). Ok says nothing.
  absl::Status Wait(int64_t deadline_ns);

  // Ends the session if its channel is broken. True if it did.
  bool EndIfBroken();

  // A better way to the same kvd may be back: looked for now and then, when nothing is under way.
  void ConsiderBetterTarget();

  // A key was read one-sidedly: told to a server that wants to know, for a sample of them
  // (HitSampler). Ends no session.
  void NoteHit(uint64_t hash, uint64_t value_bytes) {
    if (hits_.Note(hash, value_bytes)) [[unlikely]]
      ReportHits();
  }

  // Whether the server of this session takes counts.
  bool takes_counts() const {
    return session_ != nullptr && (session_->channel->welcome().feature_bits & kFeatureCounts) != 0;
  }
  // Tells the server these counts, and what NoteHit has not told yet. False: not now; an operation
  // would have to wait for its credit. Never blocks, and ends no session.
  bool TellCounts(const ReportedCounts& counts);

  // The same, `counts` null if there are none, before the client is closed. Blocks until the server
  // has taken it, for some milliseconds at most.
  void TellLast(const ReportedCounts* counts);

  // Asks the server for its clock again if what is known of it is old or poor: the answer comes
  // with a later Advance. Never blocks, and ends no session.
  void RefreshClock();

 private:
  // The session broke, if it did: `requested` is what became of its requests.
  [[gnu::noinline, gnu::cold]] void EndAfter(const absl::Status& requested);
  // The listener knows why.
  void End();
  absl::Status TryConnect(int64_t deadline_ns);
  void Begin(std::unique_ptr<Session> session, int64_t asked_ns);
  void TakeClock();
  void ReportHits();
  bool Report(const ReportedCounts& counts);

  Connector connector_;
  const bool wait_for_server_;
  Listener& listener_;
  RequestQueue requests_;
  ServerClock clock_;
  HitSampler hits_;
  Request clock_request_;
  int64_t clock_asked_ns_ = 0;
  bool clock_asked_ = false;
  bool broke_format_ = false;  // the session at hand: it ends with the next Advance
  uint64_t incarnation_ = 0;   // of the last session
  uint64_t reconnects_ = 0;
  uint64_t sessions_ = 0;
  int64_t next_look_ns_ = 0;  // for a better target
  std::unique_ptr<Session> session_;
};

}  // namespace kvd
