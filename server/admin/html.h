// The little of HTML that the status page needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvd {

// As text of an element or of an attribute in quotation marks, whatever bytes it is: what has a
// meaning in HTML is escaped, and what is no printable ASCII becomes \xNN.
std::string HtmlText(std::string_view text);

// "12,345,678".
std::string Grouped(uint64_t number);

}  // namespace kvd
