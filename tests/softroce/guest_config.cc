#include "tests/softroce/guest_config.h"

#include <fstream>

namespace kvd::softroce {

GuestConfig GuestConfig::Read(const std::string& path) {
  GuestConfig config;
  std::ifstream file(path, std::ios::binary);
  std::string entry;
  while (std::getline(file, entry, '\0')) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    config.values_[entry.substr(0, equals)].push_back(entry.substr(equals + 1));
  }
  return config;
}

const std::vector<std::string>& GuestConfig::All(const std::string& key) const {
  static const std::vector<std::string> kNone;
  const auto found = values_.find(key);
  return found == values_.end() ? kNone : found->second;
}

std::string GuestConfig::One(const std::string& key) const {
  const std::vector<std::string>& values = All(key);
  return values.empty() ? "" : values.front();
}

}  // namespace kvd::softroce
