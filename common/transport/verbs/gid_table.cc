#include "common/transport/verbs/gid_table.h"

#include <cstddef>
#include <cstring>

namespace kvd::verbs {
namespace {

// The kernel takes a table of less than 64 KiB, and refuses to fill one that is too small.
constexpr size_t kGidsMax = UINT16_MAX / sizeof(ibv_gid_entry);

}  // namespace

std::vector<ibv_gid_entry> ReadGidTable(ibv_context* context) {
  std::vector<ibv_gid_entry> entries(kGidsMax);
  const ssize_t got = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  entries.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return entries;
}

bool HoldsIpv4(const uint8_t* gid) {
  static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid, kPrefix, sizeof(kPrefix)) == 0;
}

bool IsLinkLocalGid(const uint8_t* gid) { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

}  // namespace kvd::verbs
