// What a command may know about where it runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "client/cli/byte_stream.h"
#include "common/base/clock.h"

namespace kvd::cli {

struct Console {
  ByteSource& in;
  ByteSink& out;
  ByteSink& err;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;  // on `err`
  size_t columns = 80;
  // Commands come from `in`, so nothing else can be read from it.
  bool in_is_commands = false;
  const Clock& clock;
  // Ctrl-C was pressed since an InterruptGuard was made.
  std::function<bool()> interrupted;
  // Value of an environment variable, or null.
  std::function<const char*(const char*)> environment;
  // Waits for so long; false: a Ctrl-C ended it earlier.
  std::function<bool(std::chrono::nanoseconds)> pause = {};
};

}  // namespace kvd::cli
