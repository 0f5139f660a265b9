// What a request to a real kvd costs, there and back, over shared memory.
//   bazel run //tests/e2e:round_trip_benchmark
#include <benchmark/benchmark.h>
#include <sched.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/protocol/request_codec.h"
#include "common/transport/shm/shm_client_channel.h"
#include "tests/e2e/kvd_process.h"
#include "tests/support/temp_dir.h"

namespace kvd::test {
namespace {

class Rig {
 public:
  enum class Cores { kAny, kOne };

  // kOne: kvd and this thread have one core between them.
  explicit Rig(const char* poll, Cores cores = Cores::kAny) : all_cores_(Affinity()) {
    if (cores == Cores::kOne) PinToCore();
    kvd_.emplace(std::vector<std::string>{"--shm=" + dir_.Join("s"), "--memory=256m",
                                          std::string("--poll=") + poll});
    kvd_->WaitReady();
    // The client is not to know, or it would not spin at all.
    sched_setaffinity(0, sizeof(all_cores_), &all_cores_);
    Hello hello{};
    hello.magic = kHelloMagic;
    hello.version_min = hello.version_max = kProtocolVersion;
    hello.client_id = 1;
    hello.credits_wanted = 32;
    channel = ShmClientChannel::Connect(dir_.Join("s"), hello, DeadlineNs()).value();
    if (cores == Cores::kOne) PinToCore();
  }
  ~Rig() { sched_setaffinity(0, sizeof(all_cores_), &all_cores_); }

  static int64_t DeadlineNs() { return RealClock::Get().NowMonotonicNs() + 10'000'000'000; }

  bool Send(RequestHeader header, std::string_view key, std::string_view value) {
    header.request_id = ++last_id_;
    header.key_len = static_cast<uint16_t>(key.size());
    if (header.flags == 0) header.value_len = value.size();
    return channel->Send(FrameParts{std::as_bytes(std::span(&header, 1)), key, value}).ok();
  }

  bool Receive() {
    for (;;) {
      const auto frame = channel->PollReply();
      ReplyView reply;
      if (!frame.empty()) return DecodeReply(frame, reply) == nullptr && reply.header.status == 0;
      if (!channel->Wait(DeadlineNs()).ok()) return false;
    }
  }

  std::unique_ptr<ClientChannel> channel;

 private:
  static cpu_set_t Affinity() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof(cores), &cores);
    return cores;
  }
  void PinToCore() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    int core = 0;
    while (!CPU_ISSET(core, &all_cores_)) ++core;
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }

  const cpu_set_t all_cores_;
  TempDir dir_;
  std::optional<KvdProcess> kvd_;
  uint64_t last_id_ = 0;
};

RequestHeader Of(Opcode opcode) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  return header;
}

const char* const kModes[] = {"busy", "adaptive", "event"};

void Ping(benchmark::State& state) {
  Rig rig(kModes[state.range(0)]);
  state.SetLabel(kModes[state.range(0)]);
  for (auto _ : state) {
    if (!rig.Send(Of(Opcode::kPing), {}, {}) || !rig.Receive())
      return state.SkipWithError("failed");
  }
}
BENCHMARK(Ping)->Arg(0)->Arg(1)->Arg(2)->UseRealTime();

void PingOnOneCore(benchmark::State& state) {
  Rig rig(kModes[state.range(0)], Rig::Cores::kOne);
  state.SetLabel(kModes[state.range(0)]);
  for (auto _ : state) {
    if (!rig.Send(Of(Opcode::kPing), {}, {}) || !rig.Receive())
      return state.SkipWithError("failed");
  }
}
BENCHMARK(PingOnOneCore)->Arg(1)->Arg(2)->UseRealTime();

void PipelinedPing(benchmark::State& state) {
  Rig rig("busy");
  const int64_t depth = state.range(0);
  for (auto _ : state) {
    for (int64_t i = 0; i < depth; ++i) rig.Send(Of(Opcode::kPing), {}, {});
    for (int64_t i = 0; i < depth; ++i) {
      if (!rig.Receive()) return state.SkipWithError("failed");
    }
  }
  state.SetItemsProcessed(state.iterations() * depth);
}
BENCHMARK(PipelinedPing)->Arg(8)->Arg(32)->UseRealTime();

void Put(benchmark::State& state) {
  Rig rig("busy");
  const std::string value(static_cast<size_t>(state.range(0)), 'v');
  uint64_t n = 0;
  for (auto _ : state) {
    const uint64_t key = n++ % 100'000;
    const std::string_view name(reinterpret_cast<const char*>(&key), sizeof(key));
    if (!rig.Send(Of(Opcode::kPut), name, value) || !rig.Receive()) {
      return state.SkipWithError("failed");
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Put)->Arg(64)->Arg(1024)->UseRealTime();

void PulledPut(benchmark::State& state) {
  Rig rig("busy");
  const TransferBuffer buffer = rig.channel->Allocate(static_cast<size_t>(state.range(0))).value();
  std::memset(buffer.bytes.data(), 'v', buffer.bytes.size());
  RequestHeader header = Of(Opcode::kPut);
  header.flags = kRequestPull;
  header.value_len = buffer.bytes.size();
  header.pull_address = buffer.address;
  header.pull_key = buffer.key;
  for (auto _ : state) {
    if (!rig.Send(header, "key", {}) || !rig.Receive()) return state.SkipWithError("failed");
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(PulledPut)->Arg(8 << 10)->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime();

}  // namespace
}  // namespace kvd::test

BENCHMARK_MAIN();
