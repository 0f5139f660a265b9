// What is asked of a device, cut to what it can do: made-up attributes of small, strange and large
// devices.
#include "common/transport/verbs/limits.h"

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::verbs {
namespace {

ibv_device_attr LargeDevice() {
  ibv_device_attr device{};
  device.max_qp_rd_atom = 128;
  device.max_qp_init_rd_atom = 128;
  device.max_cqe = 1 << 22;
  device.max_srq = 1000;
  device.max_srq_wr = 1 << 20;
  device.max_qp_wr = 32768;
  device.max_mr_size = ~uint64_t{0};
  return device;
}

ibv_port_attr LargePort() {
  ibv_port_attr port{};
  port.max_msg_sz = 1u << 30;
  return port;
}

LimitsWanted Wanted() {
  LimitsWanted wanted;
  wanted.cq_entries = 65536;
  wanted.srq_receives = 16384;
  return wanted;
}

}  // namespace

TEST_CASE("Limits: a large device gives all that is wanted, and nothing is noted") {
  const auto limits = ClampLimits(LargeDevice(), LargePort(), Wanted());
  KVD_REQUIRE_OK(limits);
  CHECK(limits->depth.initiator == kReadDepthWanted);
  CHECK(limits->depth.responder == kReadDepthWanted);
  CHECK(limits->cq_entries == 65536);
  CHECK(limits->srq_receives == 16384);
  CHECK(limits->read_piece_bytes == kReadPieceBytes);
  CHECK(limits->notes.empty());
}

TEST_CASE("Limits: a small device's limits are taken and said") {
  ibv_device_attr device = LargeDevice();
  device.max_qp_rd_atom = 1;
  device.max_qp_init_rd_atom = 4;
  device.max_cqe = 1000;
  device.max_srq_wr = 64;
  ibv_port_attr port = LargePort();
  port.max_msg_sz = 65537;
  const auto limits = ClampLimits(device, port, Wanted());
  KVD_REQUIRE_OK(limits);
  CHECK(limits->depth.responder == 1);
  CHECK(limits->depth.initiator == 4);
  CHECK(limits->cq_entries == 1000);
  CHECK(limits->srq_receives == 64);
  CHECK(limits->read_piece_bytes == 65536);
  CHECK_THAT(limits->notes, Catch::Contains("incoming READs 1 instead of 16"));
  CHECK_THAT(limits->notes, Catch::Contains("completion queue entries 1000 instead of 65536"));
}

TEST_CASE("Limits: a device without READs or shared receives is refused") {
  ibv_device_attr device = LargeDevice();
  device.max_qp_rd_atom = 0;
  KVD_REQUIRE_CODE(ClampLimits(device, LargePort(), Wanted()), kFailedPrecondition);
  device = LargeDevice();
  device.max_srq = 0;
  KVD_REQUIRE_CODE(ClampLimits(device, LargePort(), Wanted()), kFailedPrecondition);
  KVD_REQUIRE_OK(ClampLimits(device, LargePort(), LimitsWanted{}));  // clients need none
}

TEST_CASE("Limits: attributes that are negative or unknown do not turn into large numbers") {
  ibv_device_attr device = LargeDevice();
  device.max_cqe = -1;
  ibv_port_attr port = LargePort();
  port.max_msg_sz = 0;
  const auto limits = ClampLimits(device, port, Wanted());
  KVD_REQUIRE_OK(limits);
  CHECK(limits->cq_entries == 0);
  CHECK(limits->read_piece_bytes == kReadPieceBytes);
}

TEST_CASE("Limits: the READ depth is what both sides can do, and at least 1") {
  const ReadDepth ours{16, 8};
  const ReadDepth agreed = Negotiate(ours, 4, 2);  // the peer asks for 4 and answers 2
  CHECK(agreed.initiator == 2);
  CHECK(agreed.responder == 4);
  const ReadDepth least = Negotiate(ours, 0, 0);
  CHECK(least.initiator == 1);
  CHECK(least.responder == 1);
  const ReadDepth most = Negotiate(ours, 255, 255);
  CHECK(most.initiator == 16);
  CHECK(most.responder == 8);
}

TEST_CASE("Limits: an MTU's bytes") {
  CHECK(MtuBytes(IBV_MTU_256) == 256);
  CHECK(MtuBytes(IBV_MTU_1024) == 1024);
  CHECK(MtuBytes(IBV_MTU_4096) == 4096);
  CHECK(MtuBytes(static_cast<ibv_mtu>(99)) == 4096);
}

}  // namespace kvd::verbs
