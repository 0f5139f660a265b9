// Tells systemd how the service is doing (sd_notify(3)), where there is a systemd that wants to
// know.
#pragma once

#include <string>

namespace kvd {

// Sends one datagram such as "READY=1\nSTATUS=serving" to $NOTIFY_SOCKET. Does nothing if that is
// not set; failures are ignored, since nothing depends on it. Never blocks.
void SdNotify(const std::string& state);

}  // namespace kvd
