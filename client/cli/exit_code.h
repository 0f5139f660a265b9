// How kvcli ends: part of what scripts rely on, so a number never changes its meaning.
#pragma once

namespace kvd::cli {

enum class ExitCode : int {
  kDone = 0,
  kNotFound = 1,       // at least one of the keys that were named had no value, or the condition of
                       // a write did not hold; for doctor and devices: this machine lacks something
  kUsage = 2,          // bad arguments, or input that cannot be understood
  kCannotConnect = 3,  // no server there, or it went away
  kDeadline = 4,       // not done in time
  kRefused = 5,        // by the server: full, too large, no number to count by, not admitted, be
                       // it by the mode of its socket
  kCorrupt = 6,        // the server or its memory broke the format
  kLocalIo = 7,        // reading input or writing output failed here: disk full, say
  kInterrupted = 130,  // by Ctrl-C, as shells number it
  kBrokenPipe = 141,   // nobody reads the output any more, as shells number it
};

}  // namespace kvd::cli
