// Descriptors that this process keeps for whoever looks after it: sessions for administration are
// worth nothing if those of others, and their buffers, have taken every descriptor.
#pragma once

namespace kvd {

inline constexpr int kDescriptorsReserved = 32;  // or an eighth of a limit below 256

// Whether this descriptor, which is new, is one of the last that the process may have. (The kernel
// gives the lowest number that is free.)
bool IsOfTheReserve(int new_fd);

}  // namespace kvd
