// What a client counts of its own reading and tells its server, in front of the hashes of a HITS
// request (frames.h); `argument` says how many of these words there are. Little-endian.
//
//   value of HITS  +------+------+--------+--     --+-------------+------+------+--
//                  | gets | hits | misses |   ...   | read_errors | hash | hash |
//                  +------+------+--------+--     --+-------------+------+------+--
//                  8 bytes each, from the session's beginning on: they only grow
//
// Each is what has come together so far and not what is new, so a request that is lost is made good
// by the next one, and one that comes twice counts once. Later versions may add words behind the
// last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace kvd {

struct ReportedCounts {
  uint64_t gets;
  uint64_t hits;
  uint64_t misses;
  uint64_t reads;  // one-sided reads: READs, or loads in their place
  uint64_t read_bytes;
  uint64_t torn_reads;   // reads that did not verify and were repeated
  uint64_t retries;      // reads in vain for another reason: the item, or the bucket, was somewhere
                         // else by then
  uint64_t fallbacks;    // GETs that the server had to answer
  uint64_t read_errors;  // sessions that broke while a READ was under way
};
inline constexpr size_t kReportedCounts = sizeof(ReportedCounts) / sizeof(uint64_t);
// The same as words, to go through all of them.
using ReportedWords = std::array<uint64_t, kReportedCounts>;

// As statistics and lists of sessions call them, in their order.
inline constexpr std::array<std::string_view, kReportedCounts> kReportedNames = {
    "reported_gets",    "reported_hits",       "reported_misses",
    "reported_reads",   "reported_read_bytes", "reported_torn_reads",
    "reported_retries", "reported_fallbacks",  "reported_read_errors"};

static_assert(std::is_standard_layout_v<ReportedCounts> &&
              std::has_unique_object_representations_v<ReportedCounts>);
static_assert(sizeof(ReportedCounts) == 72 && alignof(ReportedCounts) == 8);
static_assert(offsetof(ReportedCounts, gets) == 0);
static_assert(offsetof(ReportedCounts, hits) == 8);
static_assert(offsetof(ReportedCounts, misses) == 16);
static_assert(offsetof(ReportedCounts, reads) == 24);
static_assert(offsetof(ReportedCounts, read_bytes) == 32);
static_assert(offsetof(ReportedCounts, torn_reads) == 40);
static_assert(offsetof(ReportedCounts, retries) == 48);
static_assert(offsetof(ReportedCounts, fallbacks) == 56);
static_assert(offsetof(ReportedCounts, read_errors) == 64);

}  // namespace kvd
