// Key files: what is accepted has names, roles and secrets within their limits, each name once; and
// no error has a secret in it.
#include <set>
#include <string>

#include "common/admission/access_rules.h"
#include "tests/fuzz/fuzz.h"

namespace kvd::fuzz {
namespace {

bool IsHex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Runs of digits that are long enough for a secret.
void NoSecretOf(std::string_view text, std::string_view message) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && IsHex(text[end])) ++end;
    if (end - i >= 2 * kSecretBytesMin) {
      Require(message.find(text.substr(i, end - i)) == std::string_view::npos,
              "no error has a secret in it");
    }
    i = end + 1;
  }
}

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kvd;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = ParseAccessRules(text, [](PeerRule::Kind, const std::string& name) {
    return name == "kvd" ? std::optional<uint32_t>(7) : std::nullopt;
  });
  if (!rules.ok()) {
    fuzz::Require(!rules.status().message().empty(), "an error says what");
    fuzz::NoSecretOf(text, {rules.status().message().data(), rules.status().message().size()});
    return 0;
  }
  std::set<std::string> names;
  for (const AccessKey& key : rules->keys) {
    fuzz::Require(!key.name.empty() && names.insert(key.name).second, "each name once");
    fuzz::Require(key.secret.size() >= kSecretBytesMin && key.secret.size() <= kSecretBytesMax,
                  "secrets within their limits");
    fuzz::Require(key.role != Role::kNone, "each key may something");
    fuzz::Require(rules->Find(key.name) == &key, "and is found");
  }
  return 0;
}
