#include "tests/rigs/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace kvd::test {

absl::StatusOr<std::unique_ptr<ProcessMemory>> ProcessMemory::Open(pid_t kvd) {
  std::unique_ptr<ProcessMemory> made(new ProcessMemory);
  const std::string directory = absl::StrCat("/proc/", kvd);
  std::ifstream maps(directory + "/maps");
  // The longest mapping that kvd shares and may write is the region.
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3) continue;
    if (std::string_view(rights) != "rw-s" || end - begin <= made->region_bytes_) continue;
    made->region_at_ = begin;
    made->region_bytes_ = end - begin;
  }
  if (made->region_bytes_ == 0) return absl::NotFoundError("kvd has no region");
  made->memory_ = UniqueFd(open((directory + "/mem").c_str(), O_RDWR | O_CLOEXEC));
  if (!made->memory_.valid()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the memory of another process cannot be written here: ", std::strerror(errno)));
  }
  return made;
}

std::vector<uint64_t> ProcessMemory::Find(std::string_view bytes) const {
  constexpr uint64_t kPieceBytes = 1 << 20;
  std::vector<uint64_t> found;
  std::vector<char> piece(kPieceBytes + bytes.size() - 1);
  const std::boyer_moore_horspool_searcher searcher(bytes.begin(), bytes.end());
  for (uint64_t at = 0; at < region_bytes_; at += kPieceBytes) {
    const size_t wanted = std::min<uint64_t>(piece.size(), region_bytes_ - at);
    const ssize_t got =
        pread(memory_.get(), piece.data(), wanted, static_cast<off_t>(region_at_ + at));
    if (got <= 0) continue;  // a hole that nothing was written to
    const auto end = piece.begin() + got;
    for (auto from = piece.begin();; ++from) {
      from = std::search(from, end, searcher);
      if (from == end) break;
      found.push_back(at + static_cast<uint64_t>(from - piece.begin()));
    }
  }
  return found;
}

void ProcessMemory::FlipBit(uint64_t region_offset, uint32_t bit) const {
  const auto at = static_cast<off_t>(region_at_ + region_offset);
  unsigned char byte = 0;
  KVD_CHECK(pread(memory_.get(), &byte, 1, at) == 1);
  byte ^= static_cast<unsigned char>(1u << bit);
  KVD_CHECK(pwrite(memory_.get(), &byte, 1, at) == 1);
}

}  // namespace kvd::test
