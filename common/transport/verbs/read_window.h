// READs between PostReads and PollReads: cut into pieces, at most `depth` pieces under way, done in
// order.
//
// It does no I/O, so what it decides is tested without a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "common/transport/client_channel.h"

namespace kvd::verbs {

class ReadWindow {
 public:
  struct Piece {
    uint64_t offset = 0;  // in the region
    std::byte* into = nullptr;
    uint32_t key = 0;  // of `into`
    uint32_t bytes = 0;
  };

  ReadWindow(uint32_t depth, uint64_t piece_bytes, size_t reads_max)
      : depth_(depth), piece_bytes_(piece_bytes), reads_max_(reads_max) {}

  size_t room() const { return reads_max_ - unpolled_; }
  bool under_way() const { return posted_ > 0; }
  bool anything_to_poll() const { return front_done_; }
  // A piece may be posted now.
  bool can_post() const { return posted_ < depth_ && next_ < reads_.size(); }

  // Whether a READ that is not done, or not posted yet, is into these bytes.
  bool MayStillWrite(std::span<const std::byte> bytes) const {
    const auto done = [](const Read& read) {
      return read.under_way == 0 && read.posted_bytes == read.op.length;
    };
    return std::any_of(reads_.begin(), reads_.end(), [&](const Read& read) {
      return !done(read) && read.op.into < bytes.data() + bytes.size() &&
             bytes.data() < read.op.into + read.op.length;
    });
  }

  // Takes one READ; there must be room.
  void Add(const ReadOp& op, uint32_t key) {
    reads_.push_back(Read{op, key});
    ++unpolled_;
  }

  // The next piece, which counts as under way from now on; only if can_post().
  Piece Next() {
    Read& read = reads_[next_];
    const uint64_t bytes = std::min(piece_bytes_, read.op.length - read.posted_bytes);
    const Piece piece{ToBytes(read.op.offset) + read.posted_bytes, read.op.into + read.posted_bytes,
                      read.key, static_cast<uint32_t>(bytes)};
    read.posted_bytes += bytes;
    ++posted_;
    ++read.under_way;
    if (read.posted_bytes == read.op.length) {
      ++next_;
      SkipGivenUp();
    }
    return piece;
  }

  // No more of that READ will be posted; it fails once what is under way has ended. One that is
  // wholly posted, or unknown, is left alone.
  void GiveUp(uint64_t id) {
    const auto at = std::find_if(
        reads_.begin() + static_cast<std::ptrdiff_t>(next_), reads_.end(),
        [id](const Read& read) { return read.op.id == id && !read.given_up; });
    if (at == reads_.end()) return;
    at->ok = false;
    at->given_up = true;
    at->posted_bytes = at->op.length;
    SkipGivenUp();
    Settle();
  }

  // The oldest piece under way has ended.
  void Done(bool ok) {
    --posted_;
    while (reads_[oldest_].under_way == 0) ++oldest_;
    Read& read = reads_[oldest_];
    --read.under_way;
    read.ok = read.ok && ok;
    Settle();
  }

  // No piece will be posted any more: what is left fails as soon as what is under way has ended.
  void Abandon() {
    for (size_t i = next_; i < reads_.size(); ++i) {
      reads_[i].ok = false;
      reads_[i].posted_bytes = reads_[i].op.length;
    }
    next_ = reads_.size();
    Settle();
  }

  size_t Poll(std::span<ReadCompletion> completions) {
    size_t count = 0;
    while (count < completions.size() && front_done_) {
      completions[count++] = ReadCompletion{reads_.front().op.id, reads_.front().ok};
      reads_.pop_front();
      --next_;
      if (oldest_ > 0) --oldest_;
      --unpolled_;
      Settle();
    }
    return count;
  }

 private:
  struct Read {
    ReadOp op;
    uint32_t key;
    uint64_t posted_bytes = 0;
    uint32_t under_way = 0;
    bool ok = true;
    bool given_up = false;
  };

  void SkipGivenUp() {
    while (next_ < reads_.size() && reads_[next_].given_up) ++next_;
  }
  void Settle() { front_done_ = next_ > 0 && reads_.front().under_way == 0; }

  uint32_t depth_;
  uint64_t piece_bytes_;
  size_t reads_max_;
  std::deque<Read> reads_;  // in the order in which they were added
  size_t next_ = 0;         // the first that is not wholly posted
  size_t oldest_ = 0;       // no READ before this one has a piece under way
  uint32_t posted_ = 0;
  size_t unpolled_ = 0;
  bool front_done_ = false;
};

}  // namespace kvd::verbs
