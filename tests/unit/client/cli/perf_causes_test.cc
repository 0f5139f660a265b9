// Each cause by the facts that show it, and not by those of a sound system.
#include "client/cli/perf_causes.h"

#include <string>

#include "tests/support/test.h"

namespace kvd::cli {
namespace {

using verbs::CheckOutcome;

GetFacts SoundGets() {
  GetFacts gets;
  gets.gets = 2000;
  gets.p50_us = 2.2;
  gets.p99_us = 3;
  gets.reads = 1.08;
  gets.read_bytes = 1100;
  gets.floor_us = 2;
  gets.verify_us = 0.05;
  return gets;
}

// Everything as it should be, over RDMA.
PerfFacts Sound() {
  PerfFacts facts;
  facts.over_rdma = true;
  facts.cold = SoundGets();
  facts.known = SoundGets();
  facts.known->location_hits = 2000;
  facts.miss = SoundGets();
  facts.request_p50_us = 6;
  facts.page_kind = "2 MiB";
  facts.page_fallback = "none";
  facts.poll_mode = "adaptive";
  facts.region_node = "0";
  facts.server_mtu_bytes = 4096;
  facts.items = 1000;
  facts.local_items = 960;
  facts.buckets = 100;
  facts.overflow_headers = 2;
  facts.cpu_node = 0;
  facts.device = "mlx5_0";
  facts.device_node = 0;
  facts.device_mtu_bytes = 4096;
  facts.governor = "performance";
  facts.measured_s = 1;
  facts.server_queued_us = 9'000;
  facts.server_stalled_us = 8'000;
  facts.own = {.queued_us = 7'000, .put_off = 3};
  facts.pressure_percent = 60;  // others alone
  facts.load = 40;
  facts.processors = 2;
  return facts;
}

PerfFacts SoundOverSharedMemory() {
  PerfFacts facts = Sound();
  facts.over_rdma = false;
  facts.mapped_page_bytes = 2 << 20;
  facts.device.clear();
  facts.device_node = -1;
  facts.server_mtu_bytes = 0;
  facts.device_mtu_bytes = 0;
  return facts;
}

// The only cause that is found: its name, with how it was found and what to do both there.
verbs::CheckResult Only(const PerfFacts& facts) {
  const std::vector<verbs::CheckResult> causes = JudgeAll(facts);
  REQUIRE(causes.size() == 1);
  CHECK(causes[0].outcome == CheckOutcome::kWarning);
  CHECK_FALSE(causes[0].found.empty());
  CHECK_FALSE(causes[0].remedy.empty());
  return causes[0];
}

TEST_CASE("Perf causes: none where all is as it should be") {
  CHECK(JudgeAll(Sound()).empty());
  CHECK(JudgeAll(SoundOverSharedMemory()).empty());
  CHECK(JudgeAll(PerfFacts{}).empty());  // nothing is known
}

TEST_CASE("Perf causes: 4 KiB pages, on the server's side, on both, and on this one alone") {
  PerfFacts facts = Sound();
  facts.page_kind = "4 KiB";
  facts.page_fallback = "no hugepages are reserved";
  CHECK(Only(facts).check == "cause: 4 KiB pages");
  CHECK_THAT(Only(facts).found, Catch::Contains("page_kind") &&
                                    Catch::Contains("no hugepages are reserved") &&
                                    !Catch::Contains("smaps"));
  facts = SoundOverSharedMemory();
  facts.page_kind = "4 KiB";
  facts.mapped_page_bytes = 4096;
  CHECK_THAT(Only(facts).found, Catch::Contains("/proc/self/smaps"));
  facts.page_kind = "2 MiB";
  CHECK_THAT(Only(facts).found, Catch::Contains("though kvd has it in pages of 2 MiB"));
  // Which the kernel may well split.
  facts.page_kind = "transparent 2 MiB";
  CHECK(JudgeAll(facts).empty());
}

TEST_CASE("Perf causes: another NUMA node, the device's or the region's") {
  PerfFacts facts = Sound();
  facts.device_node = 1;
  CHECK(Only(facts).check == "cause: other NUMA node");
  CHECK_THAT(Only(facts).found, Catch::Contains("mlx5_0 is on node 1"));
  CHECK_THAT(Only(facts).remedy, Catch::Contains("--cpunodebind=1"));
  facts.cpu_node = -1;
  CHECK(JudgeAll(facts).empty());
  facts = SoundOverSharedMemory();
  facts.region_node = "1";
  CHECK_THAT(Only(facts).found, Catch::Contains("the region is on node 1"));
  facts.region_node = "any";
  CHECK(JudgeAll(facts).empty());
  facts = Sound();
  facts.region_node = "1";  // of another host
  CHECK(JudgeAll(facts).empty());
}

TEST_CASE("Perf causes: an MTU of 1024, on either side, over RDMA alone") {
  PerfFacts facts = Sound();
  facts.server_mtu_bytes = 1024;
  CHECK(Only(facts).check == "cause: MTU 1024");
  CHECK_THAT(Only(facts).found, Catch::Contains("kvd's port"));
  facts = Sound();
  facts.device_mtu_bytes = 512;
  CHECK_THAT(Only(facts).found, Catch::Contains("mlx5_0"));
  facts.over_rdma = false;
  CHECK(JudgeAll(facts).empty());
}

TEST_CASE("Perf causes: events instead of polling") {
  PerfFacts facts = Sound();
  facts.poll_mode = "event";
  CHECK(Only(facts).check == "cause: events");
  CHECK_THAT(Only(facts).found, Catch::Contains("6.0 us"));
  facts.poll_mode = "busy";
  CHECK(JudgeAll(facts).empty());
}

TEST_CASE("Perf causes: loss, by the port's counters") {
  PerfFacts facts = Sound();
  facts.losses = {{"mlx5_0/1 out_of_sequence", 3}, {"mlx5_0/1 local_ack_timeout_err", 1}};
  CHECK(Only(facts).check == "cause: loss");
  CHECK_THAT(Only(facts).found, Catch::Contains("out_of_sequence by 3, mlx5_0/1 local_ack"));
}

TEST_CASE("Perf causes: processors that are shared, kvd's or this client's; before events") {
  PerfFacts facts = Sound();
  facts.server_queued_us = 21'000;
  CHECK(Only(facts).check == "cause: contention");
  CHECK_THAT(Only(facts).found, Catch::Contains("21 ms (poller_queued_us of 'kvcli stat')") &&
                                    Catch::Contains("of 1000 ms that this measured") &&
                                    Catch::Contains("load of 40.0 here on 2 processors") &&
                                    Catch::Contains("60 %") && !Catch::Contains("this client"));
  facts.poll_mode = "event";
  REQUIRE(JudgeAll(facts).size() == 2);
  CHECK(JudgeAll(facts)[0].check == "cause: contention");

  facts = Sound();
  facts.server_stalled_us = 400'000;
  CHECK_THAT(Only(facts).found, Catch::Contains("400 ms, though nobody else had it"));

  facts = Sound();
  facts.own = {.queued_us = 300'000, .put_off = 77};
  facts.pressure_percent = facts.load = -1;
  CHECK_THAT(Only(facts).found, Catch::Contains("300 ms (/proc/thread-self/schedstat)") &&
                                    Catch::Contains("77 times") && !Catch::Contains("kvd's") &&
                                    !Catch::Contains("load") && !Catch::Contains("pressure"));
  CHECK_THAT(Only(facts).remedy, Catch::Contains("--poller_cpus"));
}

TEST_CASE("Perf causes: one turn of another thread is no contention, however short the measuring") {
  PerfFacts facts = Sound();
  facts.measured_s = 0.005;
  facts.server_queued_us = facts.server_stalled_us = 9'000;
  facts.own = {.queued_us = 4'000, .put_off = 1};
  CHECK(JudgeAll(facts).empty());
  facts.measured_s = 0.05;
  facts.own.queued_us = 11'000;
  CHECK(Only(facts).check == "cause: contention");
}

TEST_CASE("Perf causes: a frequency governor that saves power") {
  PerfFacts facts = Sound();
  facts.governor = "powersave";
  CHECK(Only(facts).check == "cause: frequency governor");
  facts.governor = "";
  CHECK(JudgeAll(facts).empty());
}

TEST_CASE("Perf causes: many overflowing buckets, by the READs of a cold GET or by the server") {
  PerfFacts facts = Sound();
  facts.cold->reads = 1.6;
  CHECK(Only(facts).check == "cause: overflow");
  CHECK_THAT(Only(facts).found, Catch::Contains("1.60 READs") && Catch::Contains("96 %"));
  facts = SoundOverSharedMemory();
  facts.cold->reads = 2;  // a header and an item, which is as it should be there
  CHECK(JudgeAll(facts).empty());
  facts.overflow_headers = 40;
  CHECK(Only(facts).check == "cause: overflow");
}

TEST_CASE("Perf causes: GETs by request, retries, and locations that do not hold") {
  PerfFacts facts = Sound();
  facts.cold->by_request = 1;
  CHECK(Only(facts).check == "cause: GETs by request");
  facts = Sound();
  facts.known->torn_reads = 50;
  facts.known->moved_items = 30;
  CHECK(Only(facts).check == "cause: retries");
  facts.known->torn_reads = 1;
  facts.known->moved_items = 1;
  CHECK(JudgeAll(facts).empty());
  facts = Sound();
  facts.known->location_hits = 1000;
  CHECK(Only(facts).check == "cause: location cache");
  CHECK_THAT(Only(facts).found, Catch::Contains("50 %"));
}

TEST_CASE("Perf causes: a device made in software") {
  PerfFacts facts = Sound();
  facts.device_is_software = true;
  CHECK(Only(facts).check == "cause: software device");
}

TEST_CASE(
    "Perf causes: slow for no cause that is known is said too, and the likeliest comes first") {
  PerfFacts facts = Sound();
  facts.cold->p50_us = 9;
  CHECK(Only(facts).check == "cause: not found");
  facts.page_kind = "4 KiB";
  facts.losses = {{"mlx5_0/1 out_of_sequence", 3}};
  const auto causes = JudgeAll(facts);
  REQUIRE(causes.size() == 2);
  CHECK(causes[0].check == "cause: loss");
  facts = SoundOverSharedMemory();
  facts.cold->p50_us = 50;
  CHECK(Only(facts).check == "cause: not found");
}

}  // namespace
}  // namespace kvd::cli
