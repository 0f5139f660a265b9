// Sessions for people: the text that `kvcli admin sessions` reads, and which of them somebody
// means.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/session/admission_policy.h"

namespace kvd {

// A line each, of words "name=value" separated by spaces; a value has neither spaces nor control
// characters.
std::string DescribeSessions(std::span<const SessionFacts> sessions);

// The ids of those that `who` means: session:NUMBER, client:HEX, name:NAME (as DescribeSessions
// shows it), key:NAME, user:UID, address:HOST (with or without its port). Without such a prefix
// digits are a session's number, and anything else is a name that clients gave themselves.
// InvalidArgument: without a prefix it is also the name, key or client of others; the text says
// which there are.
absl::StatusOr<std::vector<uint64_t>> SessionsMeant(std::span<const SessionFacts> sessions,
                                                    std::string_view who);

// What is harmless in a line of a log, of a text of the client's choice.
std::string Harmless(std::string_view text);

}  // namespace kvd
