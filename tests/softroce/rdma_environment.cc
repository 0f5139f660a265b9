#include "tests/softroce/rdma_environment.h"

#include <cstdlib>
#include <sstream>

namespace kvd::test {
namespace {

std::string Variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// The parts between commas.
std::vector<std::string> List(const char* name) {
  std::vector<std::string> parts;
  std::istringstream stream(Variable(name));
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::string At(const std::vector<std::string>& list, size_t index) {
  return index < list.size() ? list[index] : "";
}

}  // namespace

RdmaEnvironment FindRdmaEnvironment() {
  RdmaEnvironment environment;
  environment.disposable = Variable("KVD_IN_GUEST") == "1";
  environment.network_program = Variable("KVD_GUEST_NETWORK");
  const std::vector<std::string> devices = List("KVD_RDMA_DEVICES");
  const std::vector<std::string> addresses = List("KVD_RDMA_ADDRESSES");
  const std::vector<std::string> ipv6_addresses = List("KVD_RDMA_ADDRESSES6");
  const std::vector<std::string> netdevs = List("KVD_RDMA_NETDEVS");
  for (size_t i = 0; i < devices.size(); ++i) {
    environment.sides.push_back({.device = devices[i],
                                 .address = At(addresses, i),
                                 .ipv6_address = At(ipv6_addresses, i),
                                 .netdev = At(netdevs, i)});
  }
  return environment;
}

}  // namespace kvd::test
