// A key and its value, as files and pipes carry them.
#pragma once

#include <string>

namespace kvd::cli {

struct Item {
  std::string key;
  std::string value;
};

}  // namespace kvd::cli
