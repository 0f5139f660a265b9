// Hello and Welcome as bytes: what either side checks before it believes the other. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/layout/hello.h"
#include "common/protocol/geometry.h"

namespace kvd {

// Judges the first frame of a client. Ok: `hello` is filled. Otherwise a Welcome with that status and the error's
// message is what the client should be told: FailedPrecondition = no common protocol version (kWrongVersion),
// InvalidArgument = not a Hello at all (kMalformed).
absl::Status ParseHello(std::span<const std::byte> frame, Hello& hello);

// How the message of an Unavailable begins by which a server that is there has refused a client as full, as against one that
// is not there.
inline constexpr char kRefusedAsFull[] = "refused: ";

// A refusal with its reason cut to the field's length.
Welcome MakeRefusal(WelcomeStatus status, std::string_view why);

// Judges the server's answer. Ok: admitted, and `welcome` holds numbers within their limits. FailedPrecondition: the
// versions do not match; Unavailable: full or shutting down, try again; PermissionDenied: not admitted;
// DataLoss: not a Welcome, or numbers that cannot be.
absl::Status ParseWelcome(std::span<const std::byte> frame, Welcome& welcome);

// Whether the frame is a Challenge, which ParseChallenge then judges, and not the answer to a Hello.
bool IsChallenge(std::span<const std::byte> frame);

// DataLoss: not what a Challenge can be.
absl::Status ParseChallenge(std::span<const std::byte> frame, Challenge& challenge);

// InvalidArgument: not what a ChallengeAnswer can be.
absl::Status ParseChallengeAnswer(std::span<const std::byte> frame, ChallengeAnswer& answer);
std::string_view KeyNameOf(const ChallengeAnswer& answer);

// The geometry in an admission.
Geometry GeometryOf(const Welcome& welcome);

}  // namespace kvd
