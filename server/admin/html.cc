#include "server/admin/html.h"

#include "absl/strings/str_format.h"

namespace kvd {

std::string HtmlText(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        if (c >= ' ' && c <= '~') {
          html += c;
        } else {
          absl::StrAppendFormat(&html, "\\x%02x", static_cast<unsigned char>(c));
        }
    }
  }
  return html;
}

std::string Grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace kvd
