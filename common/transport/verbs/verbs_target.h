// Where a client connects to, and how.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/admission/access_rules.h"

namespace kvd {

enum class VerbsConnectMode : uint8_t {
  kCm,   // rdma_cm finds the device and the path
  kTcp,  // a TCP connection carries what both sides must know, where rdma_cm cannot be used
};

struct VerbsTarget {
  std::string host;
  uint16_t port = 0;
  std::string
      device;  // empty: with rdma_cm the one that the route leads over, else the first active one
  VerbsConnectMode connect = VerbsConnectMode::kCm;
  int gid_index = -1;       // kTcp only; -1: chosen
  std::shared_ptr<const AccessKey> key = nullptr;  // to be admitted by; null: none
  uint8_t read_depth = 16;  // READs under way at once, at most; devices and peers may allow fewer
};

}  // namespace kvd
