#include "client/cli/patient_connector.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "client/cli/interrupt.h"
#include "common/base/clock.h"
#include "common/transport/shm/default_path.h"

namespace kvd::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{20};

bool DirectoryExists(const std::string& socket_path) {
  if (socket_path.empty()) return false;
  const size_t slash = socket_path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : socket_path.substr(0, slash + 1);
  return ::access(directory.c_str(), F_OK) == 0;
}

}  // namespace

std::string SocketPathOf(std::string_view target) {
  constexpr std::string_view kScheme = "shm:";
  if (target.empty()) return DefaultSocketPath();
  if (target.starts_with(kScheme)) return std::string(target.substr(kScheme.size()));
  const size_t end = target.find_first_of("/:");
  const bool is_path = end == std::string_view::npos || target[end] == '/';
  return is_path ? std::string(target) : "";
}

Connector ConnectPatiently(Connector connect, Patience patience) {
  return
      [connect = std::move(connect), patience = std::move(patience),
       in_vain = std::set<std::string, std::less<>>()](
          std::string_view target,
          const ConnectOptions& options) mutable -> absl::StatusOr<std::unique_ptr<KeyValueStore>> {
        const std::chrono::nanoseconds begun = patience.now();
        const auto enough = std::min<std::chrono::nanoseconds>(kStartPatience, options.deadline);
        absl::Status cause;  // of the last attempt that had one
        while (true) {
          const std::chrono::nanoseconds waited = patience.now() - begun;
          ConnectOptions left = options;
          left.deadline = std::max(options.deadline - waited, std::chrono::nanoseconds(1));
          auto store = connect(target, left);
          if (store.ok() || !absl::IsUnavailable(store.status())) {
            if (const auto waited_for = in_vain.find(target); waited_for != in_vain.end()) {
              in_vain.erase(waited_for);
            }
            // What was left of the deadline was too short to learn as much again.
            return absl::IsDeadlineExceeded(store.status()) && !cause.ok() ? cause
                                                                           : std::move(store);
          }
          cause = store.status();
          if (patience.now() - begun >= enough) in_vain.emplace(target);
          if (in_vain.contains(target) || patience.interrupted() ||
              !DirectoryExists(SocketPathOf(target))) {
            return store;
          }
          patience.sleep(kBetweenTries);
        }
      };
}

Patience RealPatience() {
  return {
      .now = [] { return std::chrono::nanoseconds(RealClock::Get().NowMonotonicNs()); },
      .sleep = [](std::chrono::nanoseconds time) { std::this_thread::sleep_for(time); },
      .interrupted = &InterruptGuard::Seen,
  };
}

}  // namespace kvd::cli
