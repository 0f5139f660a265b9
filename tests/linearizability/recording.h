// One recording: a real kvd, client processes that write down what they do, and what disturbs them
// meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/jumping_clock.h"
#include "tests/linearizability/operation_log.h"
#include "tests/linearizability/recording_client.h"
#include "tests/support/kvd_process.h"

namespace kvd::test {

struct RecordingOptions {
  std::string kvd;  // path of the binary
  std::vector<std::string> kvd_flags;
  std::string rdma_target;  // all but every fourth client come from there; empty: none
  uint64_t seed = 0;
  uint64_t operations = 100'000;
  uint32_t clients = 5;
  uint32_t fillers = 1;        // further clients, which add keys so that the table grows
  uint32_t breathers = 0;      // further clients, which make the table grow and shrink
  uint32_t readers = 0;        // further clients, which only read what is moved all the time
  uint64_t hot_keys = 32;      // at least 8
  int64_t deadline_ms = 5000;  // of each operation
  bool expiry = false;         // some items have one
  // How often, spread over the recording:
  uint32_t client_kills = 0;  // kill -9 of a client, and another one in its place
  uint32_t client_stops = 0;  // SIGSTOP of a client, SIGCONT after some operations of the others
  uint32_t kvd_stops = 0;     // SIGSTOP of kvd, SIGCONT after some writes have got no answer
  uint32_t kvd_restarts = 0;  // kill -9 of kvd, and another one in its place
  uint32_t clock_jumps =
      0;  // Unix time jumps, up to a day either way, for kvd, its clients or both
  JumpingClock* clock = nullptr;  // for these
};

// What was done to processes, and what the history itself does not show.
struct RecordingFaults {
  uint64_t client_kills = 0;
  uint64_t client_stops = 0;
  uint64_t kvd_stops = 0;
  uint64_t kvd_kills = 0;
  uint64_t clock_jumps = 0;
};

class Recording {
 public:
  // Null: no memory.
  static std::unique_ptr<Recording> Create(const RecordingOptions& options);
  ~Recording();

  // Carries it out. An error says what did not work, other than that answers were wrong.
  absl::Status Run();

  // What was recorded, ready to be checked.
  std::vector<Operation> History() const;

  const RecordingBoard& board() const { return board_; }
  const RecordingFaults& faults() const { return faults_; }

 private:
  enum class Disturbance : uint8_t { kClientKill, kClientStop, kKvdStop, kKvdRestart, kClockJump };
  struct Planned {
    uint64_t at;  // operations before it
    Disturbance what;
  };
  // The end of one kvd and the beginning of the next.
  struct Death {
    int64_t began_ns;    // it was alive before
    int64_t dead_ns;     // it did nothing after
    int64_t serving_ns;  // there was another one by then
  };

  Recording(const RecordingOptions& options, RecordingBoard& board,
            std::unique_ptr<OperationLog> log);

  std::vector<Planned> Plan();
  absl::Status Disturb(Disturbance what);
  void StartClient(size_t place);
  void EndClients();
  absl::Status RestartKvd();
  absl::Status StartKvd();
  absl::Status ReadStatistics(Client& client);
  // Whether kvd has back all that its clients held: sessions, descriptors and, when all items are
  // deleted, memory.
  absl::Status CheckNothingLeft(Client& client);
  // Until so many more operations have begun, or so many more writes have got no answer, or it
  // ends.
  void WaitForOperations(uint64_t more, uint64_t unknown_more) const;
  bool Going() const;
  void BoundEffect(Operation& operation) const;

  const RecordingOptions options_;
  RecordingBoard& board_;  // in memory that the clients share
  const std::unique_ptr<OperationLog> log_;
  Random random_;
  KvdProcess kvd_;
  uint64_t kvd_descriptors_ = 0;  // with one session
  RecordingFaults faults_;
  std::vector<pid_t> clients_;
  uint16_t clients_started_ = 0;
  std::vector<Death> deaths_;
};

}  // namespace kvd::test
