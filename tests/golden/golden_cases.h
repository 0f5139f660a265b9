// Bytes of every structure that kvd puts into memory or onto a wire, with what they mean: the
// content of the files beside this one. Everything in them is fixed, so each build makes the same
// bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kvd::test {

using Json = nlohmann::ordered_json;

struct GoldenCase {
  std::string name;  // of the files: name.bin, name.json
  std::string kind;  // which decoder applies
  Json context;      // what a reader knows besides the bytes: incarnation, place
  Json content;      // what the bytes say
  std::string bytes;

  // What stands in name.json.
  std::string JsonText() const;
};

std::vector<GoldenCase> GoldenCases();

// Checksums, hashes and size codes of fixed inputs: vectors.json, which has no bytes beside it.
std::string VectorsText();

// Byte i of the input of the checksums in vectors.json.
constexpr unsigned char PatternByte(size_t i) {
  return static_cast<unsigned char>(i * 131 + (i >> 8) * 7 + 1);
}

}  // namespace kvd::test
