// Writes the golden files anew. After a deliberate change of a format, with its version raised as
// docs/formats.md says:
//   bazel run //tests/golden:write_golden -- $PWD/tests/golden
#include <fstream>
#include <iostream>
#include <string>

#include "tests/golden/golden_cases.h"

namespace {

bool WriteFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file) std::cerr << "cannot write " << path << "\n";
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: write_golden DIRECTORY\n";
    return 2;
  }
  const std::string directory = std::string(argv[1]) + "/";
  bool ok = WriteFile(directory + "vectors.json", kvd::test::VectorsText());
  for (const kvd::test::GoldenCase& one : kvd::test::GoldenCases()) {
    ok = WriteFile(directory + one.name + ".bin", one.bytes) && ok;
    ok = WriteFile(directory + one.name + ".json", one.JsonText()) && ok;
  }
  return ok ? 0 : 1;
}
