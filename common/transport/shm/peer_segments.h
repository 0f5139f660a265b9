// The buffers that one client has registered for pulls, as the server sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "common/transport/shm/session_segment.h"

namespace kvd {

// A pull in progress: where the next bytes come from and go to.
struct PullSpan {
  std::shared_ptr<const UniqueFd> segment;
  uint64_t offset = 0;
  uint64_t left_bytes = 0;
  std::byte* into = nullptr;
};

// Copies up to `bytes_max` bytes and moves on. False: the bytes could not be had. It reads the
// descriptor rather than a mapping of it, so the peer cannot make it fault, and holes of the peer's
// file take no memory.
bool AdvancePull(PullSpan& pull, uint64_t bytes_max);

class PeerSegments {
 public:
  // Does what a client's notice asks; `fd` is what came with it, and is taken only if it is kept.
  // InvalidArgument: the notice breaks the protocol (unknown action, id in use, not sealed memory
  // of that length, too many or too large), and the session is to be ended.
  absl::Status Apply(const SegmentNotice& notice, UniqueFd& fd);

  // InvalidArgument: no such segment, or not inside it.
  absl::StatusOr<PullSpan> Find(uint32_t segment_id, uint64_t offset, uint64_t length,
                                std::byte* into) const;
  bool Knows(uint32_t segment_id) const;

  size_t count() const { return segments_.size(); }

 private:
  struct Segment {
    uint32_t id;
    uint64_t length;
    std::shared_ptr<const UniqueFd> fd;  // kept by pulls that are under way
  };

  const Segment* Lookup(uint32_t segment_id) const;
  absl::Status Register(const SegmentNotice& notice, UniqueFd& fd);

  std::vector<Segment> segments_;
  uint64_t bytes_ = 0;
};

}  // namespace kvd
