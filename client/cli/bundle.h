// A support bundle: what helps somebody else to find out what is wrong, and nothing that is
// private. One text file, so that whoever sends it can read all of it first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace kvd::cli {

class Bundle {
 public:
  struct Section {
    std::string name;
    std::string text;
    bool missing = false;  // the text says why
  };

  // What is empty is there as missing.
  void Add(std::string name, std::string text);
  void AddMissing(std::string name, std::string why);

  // "== NAME ==", then the text, for each.
  std::string Text() const;
  // "  NAME  1.2 KiB" or "  NAME  missing: why", a line for each.
  std::string Contents() const;

 private:
  std::vector<Section> sections_;
};

// Writes a file that was not there, for its owner alone (mode 0600). AlreadyExists: it is there, or
// a link of that name; otherwise errno's code. No part of it is left after an error.
absl::Status WriteNewPrivateFile(const std::string& path, std::string_view text);

}  // namespace kvd::cli
