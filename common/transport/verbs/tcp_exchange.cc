#include "common/transport/verbs/tcp_exchange.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/protocol/handshake.h"
#include "common/transport/verbs/gids.h"

namespace kvd::verbs {
namespace {

constexpr uint8_t kHopLimit = 64;  // routed networks; 1 would stay on this link
constexpr uint32_t kNumberMask = 0xffffff;

bool IsV4(const ExchangeData& end) {
  static constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(end.gid, kMapped, sizeof(kMapped)) == 0;
}

const char* KindOf(const ExchangeData& end) {
  if (end.gid_type == IBV_GID_TYPE_IB) return "InfiniBand";
  if (end.gid_type == IBV_GID_TYPE_ROCE_V1) return "RoCE v1";
  return IsV4(end) ? "RoCE v2 IPv4" : "RoCE v2 IPv6";
}

// Short, since a refusal has to hold it.
absl::Status CheckKinds(const ExchangeData& mine, const ExchangeData& peer) {
  const std::string_view here = KindOf(mine);
  const std::string_view there = KindOf(peer);
  if (here == there) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("GIDs of two kinds: ", ToAbsl(here), " and ",
                                             ToAbsl(there), "; see --gid_index"));
}

}  // namespace

absl::StatusOr<ExchangeData> DescribeEnd(const RdmaContext& context, uint8_t port, int gid_index,
                                         const sockaddr* local, const QueuePair& qp,
                                         const ReadDepth& depth, LocalEnd& end) {
  KVD_ASSIGN_OR_RETURN(const ibv_port_attr facts, context.QueryPort(port));
  KVD_ASSIGN_OR_RETURN(const LocalGid gid, ChooseGid(context, port, gid_index, local));
  KVD_ASSIGN_OR_RETURN(const uint64_t random, RandomU64FromOs());
  end.port = port;
  end.gid_index = gid.index;
  end.by_gid = facts.link_layer == IBV_LINK_LAYER_ETHERNET || gid_index >= 0;
  ExchangeData data{};
  data.magic = kExchangeMagic;
  data.version_min = kProtocolVersion;
  data.version_max = kProtocolVersion;
  data.mtu = static_cast<uint8_t>(facts.active_mtu);
  data.initiator = depth.initiator;
  data.responder = depth.responder;
  data.qp_number = qp.number();
  data.packet_number = static_cast<uint32_t>(random) & kNumberMask;
  data.lid = facts.lid;
  ibv_gid_entry entry{};
  if (const int error = ibv_query_gid_ex(context.get(), port, gid.index, &entry, 0); error != 0)
    return ErrnoStatus(error, absl::StrCat("asking for GID ", int{gid.index}));
  data.gid_type = static_cast<uint8_t>(entry.gid_type);
  std::memcpy(data.gid, gid.gid.raw, sizeof(data.gid));
  return data;
}

ChannelEnd EndOf(const ExchangeData& side) {
  ChannelEnd end;
  std::copy(std::begin(side.gid), std::end(side.gid), end.address.begin());
  end.lid = side.lid;
  return end;
}

absl::Status ParseExchange(std::span<const std::byte> bytes, bool is_answer, ExchangeData& data) {
  if (bytes.size() != sizeof(data))
    return absl::InvalidArgumentError("connect data has a wrong length");
  std::memcpy(&data, bytes.data(), sizeof(data));
  if (data.magic != kExchangeMagic)
    return absl::InvalidArgumentError("connect data has a wrong magic");
  if (is_answer && data.status != static_cast<uint32_t>(WelcomeStatus::kAdmitted)) {
    // What its device would not do; another choice here or there may help.
    if (data.status == static_cast<uint32_t>(WelcomeStatus::kInternal)) {
      return absl::UnavailableError(absl::StrCat(
          "refused: ", absl::string_view(data.text, strnlen(data.text, sizeof(data.text)))));
    }
    // The same words as a refusal by Welcome.
    Welcome refusal =
        MakeRefusal(static_cast<WelcomeStatus>(data.status),
                    std::string_view(data.text, strnlen(data.text, sizeof(data.text))));
    refusal.version = data.version_max;
    refusal.version_min = data.version_min;
    Welcome ignored;
    return ParseWelcome(std::as_bytes(std::span(&refusal, 1)), ignored);
  }
  if (kProtocolVersion < data.version_min || kProtocolVersion > data.version_max) {
    return absl::FailedPreconditionError(absl::StrCat("protocol ", kProtocolVersion, " here, ",
                                                      data.version_min, "..", data.version_max,
                                                      " there"));
  }
  if (data.mtu < IBV_MTU_256 || data.mtu > IBV_MTU_4096 || data.qp_number > kNumberMask ||
      data.packet_number > kNumberMask || data.gid_type > IBV_GID_TYPE_ROCE_V2 ||
      data.reserved1 != 0) {
    return absl::InvalidArgumentError("connect data holds numbers that cannot be");
  }
  return absl::OkStatus();
}

ExchangeData RefuseExchange(WelcomeStatus status, std::string_view why) {
  ExchangeData data{};
  data.magic = kExchangeMagic;
  data.status = static_cast<uint32_t>(status);
  data.version_min = kProtocolVersion;
  data.version_max = kProtocolVersion;
  why.copy(data.text, sizeof(data.text) - 1);
  return data;
}

absl::Status ConnectByHand(QueuePair& qp, const LocalEnd& end, const ExchangeData& mine,
                           const ExchangeData& peer, const ReadDepth& depth) {
  if (end.by_gid) KVD_RETURN_IF_ERROR(CheckKinds(mine, peer));
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = end.port;
  init.qp_access_flags = 0;  // until it is admitted
  KVD_RETURN_IF_ERROR(qp.Modify(
      init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT"));

  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = static_cast<ibv_mtu>(std::min(mine.mtu, peer.mtu));
  receive.dest_qp_num = peer.qp_number;
  receive.rq_psn = peer.packet_number;
  receive.max_dest_rd_atomic = depth.responder;
  receive.min_rnr_timer = kMinRnrTimer;
  receive.ah_attr.port_num = end.port;
  receive.ah_attr.dlid = peer.lid;
  if (end.by_gid) {
    receive.ah_attr.is_global = 1;
    std::memcpy(receive.ah_attr.grh.dgid.raw, peer.gid, sizeof(peer.gid));
    receive.ah_attr.grh.sgid_index = end.gid_index;
    receive.ah_attr.grh.hop_limit = kHopLimit;
  }
  KVD_RETURN_IF_ERROR(qp.Modify(receive,
                                IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                    IBV_QP_MIN_RNR_TIMER,
                                "RTR"));
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = mine.packet_number;
  send.timeout = kAckTimeout;
  send.retry_cnt = kRetryCount;
  send.rnr_retry = kRnrRetryForEver;
  send.max_rd_atomic = depth.initiator;
  return qp.Modify(send,
                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                   "RTS");
}

absl::StatusOr<uint8_t> ActivePort(const RdmaContext& context) {
  std::string seen;
  for (uint8_t port = 1; port <= context.attributes().phys_port_cnt; ++port) {
    const auto facts = context.QueryPort(port);
    if (facts.ok() && facts->state == IBV_PORT_ACTIVE) return port;
    absl::StrAppend(&seen, "; port ", port, " is ",
                    facts.ok() ? ibv_port_state_str(facts->state) : "gone");
  }
  return absl::UnavailableError(absl::StrCat("no port of ", context.name(), " is active", seen));
}

}  // namespace kvd::verbs
