// What /proc and /sys say of the limits that RDMA meets. `root` stands before every path, for
// tests.
#pragma once

#include <string>

#include "common/transport/verbs/local_check_facts.h"

namespace kvd::verbs {

NamespaceMode ReadNamespaceMode(const std::string& root = "");

// This process has CAP_IPC_LOCK of the machine, not only of a user namespace of its own.
bool MayLockWithoutLimit(const std::string& root = "");

// Sets what LocalFacts says of hugepages; nodes by rising number, none on a machine without NUMA.
void ReadHugepages(LocalFacts& facts, const std::string& root = "");

}  // namespace kvd::verbs
