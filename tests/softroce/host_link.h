// The guest's three one-way lines to guest.sh on the host: the command's output, its errors, and
// the status line. Each is a virtio-serial port.
#pragma once

#include <string>
#include <string_view>

namespace kvd::softroce {

enum class HostLine { kOutput, kErrors, kStatus };

// Opens the lines; waits for the ports to appear, at most some seconds, and calls Fail if they do
// not.
void OpenHostLines();

// Writes all the bytes; blocks while the host takes none. Does nothing before OpenHostLines.
void SendToHost(HostLine line, std::string_view bytes);

// Tells the host that the guest itself failed and why (on the console, if the status line is not
// open yet), and ends the guest. `what` gets the text of errno appended if errno is set.
[[noreturn]] void Fail(const std::string& what);

// Ends the guest at once.
[[noreturn]] void EndGuest();

}  // namespace kvd::softroce
