#include "client/cli/plain_reads.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "client/internal/target.h"
#include "common/admission/access_rules.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/layout/hello.h"
#include "common/transport/verbs/verbs_client_channel.h"

namespace kvd::cli {
namespace {

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

}  // namespace

absl::StatusOr<std::unique_ptr<PlainReads>> PlainReads::Connect(std::string_view target,
                                                                const ConnectOptions& options) {
  KVD_ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
  if (parsed.kind != Target::Kind::kRdma)
    return absl::UnimplementedError("shared memory is loaded from, not READ");
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  KVD_ASSIGN_OR_RETURN(hello.client_id, RandomU64FromOs());
  hello.credits_wanted = 1;
  hello.pid = static_cast<uint32_t>(getpid());
  constexpr std::string_view kName = "kvcli plain reads";
  kName.copy(hello.name, sizeof(hello.name) - 1);
  VerbsTarget path;
  path.host = parsed.host;
  path.port = parsed.port;
  path.device = options.rdma.device;
  path.connect = options.rdma.connect_by_tcp ? VerbsConnectMode::kTcp : VerbsConnectMode::kCm;
  path.gid_index = options.rdma.gid_index;
  if (!options.key.file.empty()) {
    KVD_ASSIGN_OR_RETURN(AccessKey key, LoadAccessKey(options.key.file, options.key.name));
    path.key = std::make_shared<const AccessKey>(std::move(key));
  }
  KVD_ASSIGN_OR_RETURN(
      auto channel, VerbsClientChannel::Connect(path, hello, NowNs() + options.deadline.count()));
  return std::unique_ptr<PlainReads>(new PlainReads(std::move(channel), options.deadline));
}

absl::StatusOr<std::chrono::nanoseconds> PlainReads::Read(uint64_t bytes) {
  if (bytes > channel_->welcome().region_bytes)
    return absl::OutOfRangeError("the server's memory is smaller");
  if (buffer_.bytes.size() < bytes) {
    if (!buffer_.bytes.empty()) channel_->Free(std::exchange(buffer_, {}));
    KVD_ASSIGN_OR_RETURN(buffer_, channel_->Allocate(bytes));
  }
  const int64_t start_ns = NowNs();
  const ReadOp read{RegionOffset{0}, bytes, buffer_.bytes.data(), 0};
  KVD_RETURN_IF_ERROR(channel_->PostReads({&read, 1}));
  ReadCompletion done;
  while (channel_->PollReads({&done, 1}) == 0)
    KVD_RETURN_IF_ERROR(channel_->Wait(start_ns + deadline_.count()));
  if (!done.ok) return channel_->status();
  return std::chrono::nanoseconds(NowNs() - start_ns);
}

}  // namespace kvd::cli
