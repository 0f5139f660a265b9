// One run of a program through a shell, for tests of what it prints.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace kvd::test {

struct ProgramRun {
  int exit = -1;
  std::string out;
  std::string err;
};

// `command` as a shell reads it; no standard input.
inline ProgramRun RunShell(const std::string& command) {
  const TempDir directory;
  const auto read = [](const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string whole =
      "exec </dev/null >" + directory.Join("out") + " 2>" + directory.Join("err") + "; " + command;
  const int status = std::system(whole.c_str());
  ProgramRun run;
  run.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.out = read(directory.Join("out"));
  run.err = read(directory.Join("err"));
  return run;
}

}  // namespace kvd::test
