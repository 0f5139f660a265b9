// The client's side of a handshake, from Hello to what it may believe. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/admission/access_rules.h"
#include "common/admission/proof.h"
#include "common/layout/hello.h"

namespace kvd {

// A client with a key goes on only with a server that has proved to have the same key: whoever
// could take the server's place would otherwise be read from and written to.
class ClientDialogue {
 public:
  // `transport`: "shm" or "rdma". `ends`: as this side sees them. `key`: null: none.
  ClientDialogue(std::string_view transport, const ChannelEnds& ends, const Hello& hello,
                 std::shared_ptr<const AccessKey> key);

  // The first frame to send.
  const Hello& hello() const { return said_.hello; }

  // Judges the server's next frame. True: admitted, and welcome() holds numbers within their
  // limits. False: send answer() and give the next frame. Errors: as ParseWelcome; PermissionDenied
  // where the server has not proved to have the key; DataLoss for a challenge that cannot be.
  absl::StatusOr<bool> Take(std::span<const std::byte> frame);

  const ChallengeAnswer& answer() const { return said_.answer; }
  const Welcome& welcome() const { return welcome_; }

 private:
  absl::Status Answer(std::span<const std::byte> frame);
  absl::Status CheckProof() const;

  std::shared_ptr<const AccessKey> key_;
  Transcript said_;
  bool answered_ = false;
  Welcome welcome_{};
};

}  // namespace kvd
