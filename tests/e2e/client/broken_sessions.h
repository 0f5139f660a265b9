// Breaks the sessions of this process's clients over shared memory, as a network would break those
// over RDMA: both sides are told that the other one has gone, and both are still there.
#pragma once

namespace kvd::test {

// Shuts all connected Unix sockets of type SOCK_SEQPACKET in this process down. Returns how many.
// Any thread.
int BreakSessions();

}  // namespace kvd::test
