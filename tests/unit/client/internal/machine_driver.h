// Drives a GetMachine against a region without a channel: each read is a copy into memory of
// exactly its length, so that a sanitizer sees any look beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/internal/get_machine.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {

// Memory of exactly `bytes` bytes on a cache line of its own.
class ExactBuffer {
 public:
  explicit ExactBuffer(size_t bytes)
      : size_(bytes), data_(static_cast<std::byte*>(::operator new(bytes, kAlign))) {}
  ~ExactBuffer() { ::operator delete(data_, kAlign); }
  ExactBuffer(const ExactBuffer&) = delete;
  ExactBuffer& operator=(const ExactBuffer&) = delete;

  std::span<std::byte> bytes() { return {data_, size_}; }

 private:
  static constexpr std::align_val_t kAlign{64};
  size_t size_;
  std::byte* data_;
};

class MachineDriver {
 public:
  // Called before read number 1, 2, ...: changes the region under the reader's eyes.
  using BeforeRead = std::function<void(int number, const GetMachine::Read& read)>;
  // Called on what was read, before the machine sees it.
  using AfterRead =
      std::function<void(int number, const GetMachine::Read& read, std::span<std::byte> bytes)>;

  explicit MachineDriver(TestRegion& region, bool whole_buckets = true,
                         uint64_t item_bytes_max = 1 << 20)
      : region_(region), map_(region.geometry(), item_bytes_max), machine_(map_, whole_buckets) {}

  GetMachine::Need Get(std::string_view key) {
    return Drive(machine_.Start(key, region_.Hash(key)));
  }

  GetMachine::Need GetAt(std::string_view key, Slot slot) {
    return Drive(machine_.StartAt(key, region_.Hash(key), slot));
  }

  GetMachine::Need GetHeld(std::string_view key, Slot slot, uint64_t version) {
    return Drive(machine_.StartHeld(key, region_.Hash(key), slot, version));
  }

  // Reads the directory, so that a test counts a GET's own reads only.
  void Warm() {
    const BeforeRead before = std::exchange(before_read, nullptr);
    Get("key that warms the map");
    before_read = before;
  }

  RegionMap& map() { return map_; }
  GetMachine& machine() { return machine_; }
  // Of the last GET.
  const std::vector<GetMachine::Read>& reads() const { return reads_; }
  // Reads that did not lie in the region, were not in whole words or of a length that no read has.
  int bad_reads() const { return bad_reads_; }

  BeforeRead before_read;
  AfterRead after_read;

 private:
  GetMachine::Need Drive(GetMachine::Need need) {
    reads_.clear();
    while (need == GetMachine::Need::kRead) {
      const GetMachine::Read read = machine_.read();
      reads_.push_back(read);
      const int number = static_cast<int>(reads_.size());
      if (before_read) before_read(number, read);
      if (read.length == 0 || read.length % 8 != 0 || ToBytes(read.offset) % 8 != 0 ||
          !region_.geometry().Contains(read.offset, read.length)) {
        ++bad_reads_;
        return GetMachine::Need::kAskServer;
      }
      auto& buffer = buffers_[static_cast<size_t>(read.into)];
      buffer = std::make_unique<ExactBuffer>(read.length);
      std::memcpy(buffer->bytes().data(), region_.At(read.offset), read.length);
      if (after_read) after_read(number, read, buffer->bytes());
      need = machine_.Resume(buffer->bytes());
    }
    return need;
  }

  TestRegion& region_;
  RegionMap map_;
  GetMachine machine_;
  std::unique_ptr<ExactBuffer> buffers_[3];
  std::vector<GetMachine::Read> reads_;
  int bad_reads_ = 0;
};

}  // namespace kvd::test
