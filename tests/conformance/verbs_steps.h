// Small steps of cases about connections of their own, and disturbances of the wire.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/verbs/verbs_client_channel.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {

inline void RequireDevices() {
  if (FindRdmaEnvironment().sides.empty()) KVD_SKIP("no RDMA devices: KVD_RDMA_DEVICES is not set");
}

// Two devices with a wire between them that may be disturbed.
inline void RequireWire() {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (!environment.disposable || environment.sides.size() < 2)
    KVD_SKIP("links of this machine are not to be disturbed");
}

inline VerbsTarget TargetAt(uint16_t port) {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  VerbsTarget target;
  target.host = environment.server().address;
  target.port = port;
  target.device = environment.client().device;
  target.connect = VerbsConnectModeUnderTest();
  return target;
}

inline std::unique_ptr<ClientChannel> ConnectTo(uint16_t port) {
  auto channel = VerbsClientChannel::Connect(TargetAt(port), MakeHello(), DeadlineNs());
  KVD_REQUIRE_OK(channel);
  return *std::move(channel);
}

// One READ of the region, waited for.
inline absl::Status ReadOnce(ClientChannel& client, const TransferBuffer& buffer) {
  const ReadOp op{RegionOffset{FakeRegion::kDataOffset}, 64, buffer.bytes.data(), 1};
  if (absl::Status posted = client.PostReads({&op, 1}); !posted.ok()) return posted;
  ReadCompletion done[1];
  while (client.PollReads(done) == 0) {
    if (absl::Status waited = client.Wait(DeadlineNs()); !waited.ok()) return waited;
  }
  return done[0].ok ? absl::OkStatus() : client.status();
}

// For people: how long something took. Never a reason to fail.
class Took {
 public:
  explicit Took(const char* what) : what_(what) {}
  ~Took() {
    std::cout << what_ << " took " << (RealClock::Get().NowMonotonicNs() - start_ns_) / 1'000'000
              << " ms\n";
  }

 private:
  const char* what_;
  const int64_t start_ns_ = RealClock::Get().NowMonotonicNs();
};

inline void Shell(const std::string& command) {
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);
}

// Holds for as long as it lives, or until it is restored.
class Disturbance {
 public:
  Disturbance(const std::string& begin, std::string end) : end_(std::move(end)) { Shell(begin); }
  ~Disturbance() { Restore(); }
  Disturbance(const Disturbance&) = delete;
  Disturbance& operator=(const Disturbance&) = delete;

  void Restore() {
    const std::string end = std::exchange(end_, "");
    if (!end.empty() && std::system(end.c_str()) != 0) std::abort();
  }

 private:
  std::string end_;
};

// The clients' link is down.
class LinkDown : public Disturbance {
 public:
  LinkDown() : Disturbance(Link("down"), Link("up")) {}

 private:
  static std::string Link(const char* direction) {
    const RdmaEnvironment environment = FindRdmaEnvironment();
    return absl::StrCat(environment.network_program, " ", direction, " ",
                        environment.client().netdev);
  }
};

// What the clients send takes longer.
class Delay : public Disturbance {
 public:
  explicit Delay(const char* time)
      : Disturbance(absl::StrCat(Qdisc("replace"), " netem delay ", time), Qdisc("del")) {}

 private:
  static std::string Qdisc(const char* verb) {
    return absl::StrCat("tc qdisc ", verb, " dev ", FindRdmaEnvironment().client().netdev, " root");
  }
};

// Packets to the clients over so many bytes vanish, as at a switch with a smaller MTU.
class LargePacketsVanish : public Disturbance {
 public:
  explicit LargePacketsVanish(int bytes) : Disturbance(Begin(bytes), Qdisc("del")) {}

 private:
  static std::string Qdisc(const char* verb) {
    return absl::StrCat("tc qdisc ", verb, " dev ", FindRdmaEnvironment().client().netdev,
                        " clsact");
  }
  static std::string Begin(int bytes) {
    return absl::StrCat("for m in sch_ingress cls_basic em_meta act_gact; do modprobe $m; done; ",
                        Qdisc("add"), " && tc filter add dev ",
                        FindRdmaEnvironment().client().netdev,
                        " ingress basic match 'meta(pkt_len gt ", bytes, ")' action drop");
  }
};

}  // namespace kvd::test
