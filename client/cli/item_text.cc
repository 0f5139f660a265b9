#include "client/cli/item_text.h"

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"

namespace kvd::cli {

std::string ValueText(std::string_view bytes, const TextStyle& style) {
  if (style.hex) return HexOf(bytes);
  return style.terminal ? ForTerminal(bytes) : std::string(bytes);
}

std::string LineText(std::string_view bytes, const TextStyle& style) {
  if (style.hex) return HexOf(bytes);
  return style.terminal ? OneLine(bytes) : std::string(bytes);
}

std::string CellText(std::string_view bytes, bool hex) {
  return hex ? HexOf(bytes) : OneLine(bytes);
}

void AppendItemJson(std::string_view key, std::string_view value, const ItemInfo& info,
                    ByteText form, std::string& out) {
  out += '{';
  AppendJsonBytes("key", key, form, out);
  out += ',';
  AppendJsonBytes("value", value, form, out);
  absl::StrAppend(&out, ",\"version\":", JsonNumber(info.version));
  AppendJsonTraits({info.expiry_unix_us, info.user_flags}, out);
  out += "}\n";
}

}  // namespace kvd::cli
