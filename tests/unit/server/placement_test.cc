// Placement: what is chosen by itself, what is insisted on, and what cannot be, by the facts of
// machines that are not here.
#include "server/placement.h"

#include <string>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;
using Cpus = std::vector<int>;

NumaFacts TwoNodes(int device_node) {
  NumaFacts facts;
  facts.nodes = {{.id = 0, .cpus = {0, 1, 2, 3}, .bytes = uint64_t{64} << 30},
                 {.id = 1, .cpus = {4, 5, 6, 7}, .bytes = uint64_t{64} << 30}};
  facts.allowed = {0, 1, 2, 3, 4, 5, 6, 7};
  facts.device_node = device_node;
  facts.device = "mlx5_0";
  return facts;
}

PlacementWish Wish(uint32_t pollers) {
  PlacementWish wish;
  wish.pollers = pollers;
  wish.memory_bytes = uint64_t{1} << 30;
  return wish;
}

}  // namespace

TEST_CASE("Placement: the device's node, where the machine has several") {
  const Placement placement = Place(Wish(2), TwoNodes(1)).value();
  CHECK(placement.node == 1);
  CHECK_FALSE(placement.strict);
  CHECK(placement.poller_cpus == std::vector<Cpus>{{4, 5, 6, 7}, {4, 5, 6, 7}});
  CHECK(placement.warnings.empty());
  CHECK(Describe(placement) == "region on node 1, pollers on processors 4-7");
}

TEST_CASE("Placement: without a device, or with one node, it is left to the kernel") {
  NumaFacts one = TwoNodes(0);
  one.nodes.pop_back();
  NumaFacts none;
  none.allowed = {0};
  for (const NumaFacts& facts : {TwoNodes(-1), one, none}) {
    const Placement placement = Place(Wish(1), facts).value();
    CHECK(placement.node == -1);
    CHECK(placement.poller_cpus.empty());
    CHECK(placement.warnings.empty());
    CHECK(Describe(placement) == "wherever the kernel likes");
  }
  PlacementWish off = Wish(1);
  off.node = PlacementWish::kOff;
  CHECK(Place(off, TwoNodes(1)).value().node == -1);
}

TEST_CASE("Placement: what is insisted on is done, and warned of where it will be slow") {
  PlacementWish wish = Wish(2);
  wish.node = 0;
  Placement placement = Place(wish, TwoNodes(1)).value();
  CHECK(placement.node == 0);
  CHECK(placement.strict);
  REQUIRE(placement.warnings.size() == 1);
  CHECK_THAT(placement.warnings[0], Contains("mlx5_0 is at node 1"));

  wish = Wish(2);
  wish.poller_cpus = {5, 0, 7};
  placement = Place(wish, TwoNodes(1)).value();
  CHECK(placement.poller_cpus == std::vector<Cpus>{{5}, {0}});
  REQUIRE(placement.warnings.size() == 1);
  CHECK_THAT(placement.warnings[0], Contains("processor 0 is at another node than the region, 1"));

  wish = Wish(1);
  wish.memory_bytes = uint64_t{65} << 30;
  placement = Place(wish, TwoNodes(1)).value();
  REQUIRE(placement.warnings.size() == 1);
  CHECK_THAT(placement.warnings[0], Contains("--numa_node=off"));

  NumaFacts elsewhere = TwoNodes(1);
  elsewhere.allowed = {0, 1};
  elsewhere.nodes[1].cpus.clear();
  placement = Place(Wish(1), elsewhere).value();
  CHECK(placement.node == 1);
  CHECK(placement.poller_cpus.empty());
  CHECK_THAT(placement.warnings.at(0), Contains("none of node 1's processors"));
}

TEST_CASE("Placement: what cannot be is an error with flag, value and remedy") {
  PlacementWish wish = Wish(1);
  wish.node = 2;
  CHECK_THAT(MessageOf(Place(wish, TwoNodes(1)).status()),
             Contains("--numa_node=2 is not there; this machine has 0-1"));
  wish = Wish(3);
  wish.poller_cpus = {1, 2};
  CHECK_THAT(MessageOf(Place(wish, TwoNodes(1)).status()),
             Contains("--poller_cpus=1-2 has 2 processors for --pollers=3"));
  wish = Wish(1);
  wish.poller_cpus = {9};
  CHECK_THAT(MessageOf(Place(wish, TwoNodes(1)).status()), Contains("processor 9 is not there"));
}

TEST_CASE("Placement: lists of processors are read, and written as short as they can be") {
  CHECK(ParseCpuList("0").value() == Cpus{0});
  CHECK(ParseCpuList("4-6,0,2").value() == Cpus{4, 5, 6, 0, 2});
  for (const char* bad :
       {"", ",", "1,", "-1", "1-", "2-1", "a", "1,1", "1-3,2", "0-65536", "1--2"}) {
    INFO(bad);
    KVD_REQUIRE_CODE(ParseCpuList(bad), kInvalidArgument);
  }
  CHECK(CpuListText({}).empty());
  CHECK(CpuListText({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}

TEST_CASE("Placement: of this machine at least the processors are known, each on one node") {
  const NumaFacts facts = GatherNumaFacts();
  REQUIRE_FALSE(facts.allowed.empty());
  for (const NumaFacts::Node& node : facts.nodes) CHECK(node.bytes > 0);
  KVD_REQUIRE_OK(Place(Wish(1), facts).status());
}

}  // namespace kvd::test
