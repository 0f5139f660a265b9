// Runs a fuzz target without a fuzzer: on each file of the folders that are named, and on inputs
// that are made of them by a seeded generator.
//
//   TARGET_replay_test MADE_UP FOLDER...
//
// A file that ends the program is the one that was named last.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr size_t kBytesMax = 4096;

using Input = std::string;

void RunOne(const Input& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// One of the corpus, changed as a fuzzer would begin to.
Input Mutated(const std::vector<Input>& corpus, kvd::Random& random) {
  Input input = corpus.empty() ? Input() : corpus[random.Uniform(corpus.size())];
  for (uint64_t i = 1 + random.Uniform(8); i > 0; --i) {
    const size_t at = input.empty() ? 0 : random.Uniform(input.size());
    const char byte = static_cast<char>(random.Uniform(256));
    switch (random.Uniform(4)) {
      case 0:
        input.insert(at, 1 + random.Uniform(16), byte);
        break;
      case 1:
        input.erase(at, 1 + random.Uniform(16));
        break;
      default:
        if (!input.empty()) input[at] = byte;
    }
  }
  if (input.size() > kBytesMax) input.resize(kBytesMax);
  return input;
}

// Its files, in the order of their names: as one case, or, of those that once broke something, each
// as one of its own.
void ReplayFolder(const std::filesystem::path& folder, std::vector<Input>& corpus) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const bool found = folder.parent_path().filename() == "found";
  std::string name = folder.parent_path().filename() / folder.filename();
  if (!found) std::printf("KVD_CASE begins %s\n", name.c_str());
  for (const std::filesystem::path& path : files) {
    if (found) {
      name = folder.filename() / path.filename();
      std::printf("KVD_CASE begins %s\n", name.c_str());
    } else {
      std::printf("%s\n", path.c_str());
    }
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    RunOne(corpus.back());
    if (found) std::printf("KVD_CASE passed %s\n", name.c_str());
  }
  if (!found) std::printf("KVD_CASE passed %s, %zu inputs\n", name.c_str(), files.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<Input> corpus;
  const long made_up = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 0;
  for (int i = 2; i < argc; ++i) ReplayFolder(argv[i], corpus);
  const char* const given = std::getenv("KVD_TEST_SEED");
  const uint64_t seed =
      given == nullptr ? std::random_device{}() : std::strtoull(given, nullptr, 0);
  std::printf("KVD_CASE begins made up of them, KVD_TEST_SEED=%llu\n",
              static_cast<unsigned long long>(seed));
  kvd::Random random(seed);
  RunOne("");
  for (long i = 0; i < made_up; ++i) RunOne(Mutated(corpus, random));
  std::printf("KVD_CASE passed made up of them, KVD_TEST_SEED=%llu\n",
              static_cast<unsigned long long>(seed));
  return 0;
}
