#include "common/protocol/client_report.h"

#include <algorithm>

namespace kvd {

FrameError DecodeReport(const RequestView& request, ClientReport& report) {
  report = {};
  constexpr size_t kWord = sizeof(uint64_t);
  const std::string_view value = request.value;
  if (value.size() % kWord != 0) return "hashes of keys have 8 bytes each";
  const uint64_t counts = request.header.argument;
  if (counts > value.size() / kWord) return "fewer counts than it says";
  value.copy(reinterpret_cast<char*>(&report.counts),
             std::min<size_t>(counts, kReportedCounts) * kWord);
  report.hashes = value.substr(counts * kWord);
  return nullptr;
}

}  // namespace kvd
