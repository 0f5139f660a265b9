// What tests of killed and stopped processes share: clients to kill, and looks at what they leave behind.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "client/kv_client.h"
#include "tests/support/kvd_process.h"

namespace kvd::test {

// Victims write these keys, HuntKey(0) to HuntKey(kVictimKeys - 1), with values that certify themselves.
inline constexpr uint64_t kVictimKeys = 16;

// The test fails if it cannot connect.
std::unique_ptr<Client> ConnectTo(const KvdProcess& kvd, const ClientOptions& options = {});

// A number of kvd's statistics; the test fails if there is none.
uint64_t Stat(Client& client, const std::string& name);

// Polls until `holds`, up to 10 s.
bool Eventually(const std::function<bool()>& holds);

size_t OpenDescriptors(pid_t pid);

// A process that writes and reads until it is killed. Values of up to 128 KiB are pulled from its memory by kvd.
pid_t StartVictim(const std::string& target, uint64_t seed);

// False if it had ended by itself.
bool KillVictim(pid_t victim);

}  // namespace kvd::test
