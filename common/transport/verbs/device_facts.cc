#include "common/transport/verbs/device_facts.h"

namespace kvd::verbs {

std::string_view NameOf(Fabric fabric) {
  switch (fabric) {
    case Fabric::kInfiniBand:
      return "InfiniBand";
    case Fabric::kRoce:
      return "RoCE";
    case Fabric::kIwarp:
      return "iWARP";
    case Fabric::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view NameOf(PortState state) {
  switch (state) {
    case PortState::kDown:
      return "DOWN";
    case PortState::kInit:
      return "INIT";
    case PortState::kArmed:
      return "ARMED";
    case PortState::kActive:
      return "ACTIVE";
    case PortState::kActiveDefer:
      return "ACTIVE_DEFER";
    case PortState::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view NameOf(GidType type) {
  switch (type) {
    case GidType::kInfiniBand:
      return "IB";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
    case GidType::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace kvd::verbs
