#include "common/transport/shm/peer_segments.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/sealed_memory.h"
#include "common/transport/shm/descriptor_closer.h"

namespace kvd {
namespace {

// Closed elsewhere too: the last close frees the memory, which takes a while if it is large.
std::shared_ptr<const UniqueFd> Keep(UniqueFd fd) {
  return {new UniqueFd(std::move(fd)), [](UniqueFd* kept) {
            CloseElsewhere(std::move(*kept));
            delete kept;
          }};
}

}  // namespace

bool AdvancePull(PullSpan& pull, uint64_t bytes_max) {
  uint64_t budget = std::min(bytes_max, pull.left_bytes);
  while (budget > 0) {
    const ssize_t got =
        pread(pull.segment->get(), pull.into, budget, static_cast<off_t>(pull.offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const auto bytes = static_cast<uint64_t>(got);
    pull.into += bytes;
    pull.offset += bytes;
    pull.left_bytes -= bytes;
    budget -= bytes;
  }
  return true;
}

absl::Status PeerSegments::Apply(const SegmentNotice& notice, UniqueFd& fd) {
  if (notice.segment_id == 0) return absl::InvalidArgumentError("segment id 0");
  switch (static_cast<SegmentAction>(notice.action)) {
    case SegmentAction::kRegister:
      return Register(notice, fd);
    case SegmentAction::kForget: {
      const Segment* found = Lookup(notice.segment_id);
      if (found == nullptr) return absl::OkStatus();  // never arrived for want of descriptors
      bytes_ -= found->length;
      segments_.erase(segments_.begin() + (found - segments_.data()));
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown segment action ", notice.action));
}

absl::Status PeerSegments::Register(const SegmentNotice& notice, UniqueFd& fd) {
  if (!fd.valid()) return absl::InvalidArgumentError("segment without a descriptor");
  if (Knows(notice.segment_id)) {
    return absl::InvalidArgumentError(absl::StrCat("segment ", notice.segment_id, " twice"));
  }
  if (segments_.size() >= kPullSegmentsMax || notice.length_bytes > kPullBytesMax - bytes_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "segment of ", notice.length_bytes, " bytes beyond ", segments_.size(), " segments of ",
        bytes_, " bytes; the limits are ", kPullSegmentsMax, " and ", kPullBytesMax));
  }
  KVD_RETURN_IF_ERROR(CheckSealedMemory(fd.get(), notice.length_bytes));
  segments_.push_back(Segment{notice.segment_id, notice.length_bytes, Keep(std::move(fd))});
  bytes_ += notice.length_bytes;
  return absl::OkStatus();
}

const PeerSegments::Segment* PeerSegments::Lookup(uint32_t segment_id) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(),
                                  [&](const Segment& s) { return s.id == segment_id; });
  return found == segments_.end() ? nullptr : &*found;
}

bool PeerSegments::Knows(uint32_t segment_id) const { return Lookup(segment_id) != nullptr; }

absl::StatusOr<PullSpan> PeerSegments::Find(uint32_t segment_id, uint64_t offset, uint64_t length,
                                            std::byte* into) const {
  const Segment* found = Lookup(segment_id);
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no buffer with key ", segment_id));
  }
  if (offset > found->length || length > found->length - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(length, " bytes at ", offset, " are not inside a buffer of ", found->length));
  }
  return PullSpan{found->fd, offset, length, into};
}

}  // namespace kvd
