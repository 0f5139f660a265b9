#include "client/bench/kvbench/options.h"

#include <string>
#include <vector>

#include "client/bench/kvbench/help.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::bench {
namespace {

using Words = std::vector<std::string>;
using namespace std::chrono_literals;

absl::StatusOr<Options> Parse(const Words& arguments) {
  cli::FlagValues flags;
  flags.Declare(BenchFlags());
  const auto rest = flags.TakeArguments(arguments, {});
  if (!rest.ok()) return rest.status();
  return OptionsOf(flags);
}

TEST_CASE("Options: without flags") {
  const auto options = Parse({});
  KVD_REQUIRE_OK(options);
  const Workload& work = options->workload;
  CHECK(work.mix.Text() == "get 95 %, put 5 %");
  CHECK(work.distribution.Text() == "uniform");
  CHECK(work.keys == 100'000);
  CHECK(work.key_size == 8);
  CHECK(work.value_sizes.text() == "64");
  CHECK(work.clients == 1);
  CHECK(work.duration == 10s);
  CHECK(work.warm_up == 1s);
  CHECK(work.operations == 0);
  CHECK(work.load);
  CHECK(options->client.location_cache_entries == 0);
  CHECK(options->floor == Floor::kAuto);
}

TEST_CASE("Options: perftest's letters mean what they mean there") {
  const auto options =
      Parse({"-d", "mlx5_0", "-x", "3", "--connect=tcp", "-n", "1000", "-s", "4k", "-t", "16"});
  KVD_REQUIRE_OK(options);
  CHECK(options->client.rdma_device == "mlx5_0");
  CHECK(options->client.rdma_gid_index == 3);
  CHECK(options->workload.operations == 1000);
  CHECK(options->workload.duration == 0s);
  CHECK(options->workload.value_sizes.max() == 4096);
  CHECK(options->workload.depth == 16);
  CHECK(options->client.credits == 16);
  CHECK(Parse({"-D", "5"})->workload.duration == 5s);
  CHECK(Parse({"-a"})->all_sizes);
}

TEST_CASE("Options: the key to be admitted by") {
  const auto options = Parse({"--key_file=/k", "--key_name=app"});
  KVD_REQUIRE_OK(options);
  CHECK(options->client.key_file == "/k");
  CHECK(options->client.key_name == "app");
}

TEST_CASE("Options: a workload of YCSB brings its distribution, unless another is given") {
  CHECK(Parse({"--mix=d"})->workload.distribution.Text() == "latest:0.99");
  CHECK(Parse({"--mix=d", "--dist=uniform"})->workload.distribution.Text() == "uniform");
}

TEST_CASE("Options: the location cache by switch or by size") {
  CHECK(Parse({"--location_cache=on", "--keys=1000"})->client.location_cache_entries == 4000);
  CHECK(Parse({"-l", "64"})->client.location_cache_entries == 64);
  CHECK_FALSE(Parse({"-l", "64"})->locations_shared);
  CHECK(Parse({"--location_cache=shared", "--keys=1000"})->client.location_cache_entries == 4000);
  CHECK(Parse({"--location_cache=shared"})->locations_shared);
  CHECK(Parse({"--location_cache=shared:64"})->client.location_cache_entries == 64);
  CHECK(Parse({"--location_cache=shared:64"})->locations_shared);
}

TEST_CASE("Options: a wrong value is named together with its flag and what is allowed") {
  const struct {
    Words arguments;
    const char* value;
    const char* allowed;
  } kWrong[] = {
      {{"--mix=x"}, "--mix=x", "95:5"},
      {{"--dist=zpf"}, "--dist=zpf", "zipf:THETA"},
      {{"--value_size=0"}, "--value_size=0", "1 byte"},
      {{"--keys=0"}, "--keys=0", "give 1 to"},
      {{"--keys=65", "--key_size=1"}, "--keys=65", "give 1 to 64"},
      {{"--keys=40", "--key_size=1", "--mix=d"}, "--keys=40", "give 1 to 32"},
      {{"--keys=many"}, "--keys=many", "whole number"},
      {{"--key_size=0"}, "--key_size=0", "give 1 to 4096"},
      {{"--key_size=5000"}, "--key_size=5000", "give 1 to 4096"},
      {{"--clients=0"}, "--clients=0", "give 1 to 1024"},
      {{"--batch=0"}, "--batch=0", "give 1 to 4096"},
      {{"--batch=8", "--depth=8"}, "--depth=8", "--batch or --depth"},
      {{"--batch=8", "--rmw=cas"}, "--rmw=cas", "--rmw=put"},
      {{"--depth=2000"}, "--depth=2000", "give 1 to 1024"},
      {{"--rate=-1"}, "--rate=-1", "operations a second"},
      {{"--rate=fast"}, "--rate=fast", "operations a second"},
      {{"--rate=10", "--sample=2"}, "--sample=2", "leave it out"},
      {{"--arrivals=never"}, "--arrivals=never", "constant, poisson"},
      {{"--misses=101"}, "--misses=101", "give 0 to 100"},
      {{"--location_cache=maybe"}, "--location_cache=maybe", "on, off"},
      {{"--location_cache=shared:"}, "--location_cache=shared:", "shared:NUMBER"},
      {{"--location_cache=shared:0"}, "--location_cache=shared:0", "shared:NUMBER"},
      {{"--location_cache=sharedoff"}, "--location_cache=sharedoff", "shared:NUMBER"},
      {{"--location_cache=64:64"}, "--location_cache=64:64", "shared:NUMBER"},
      {{"--location_cache=shared", "--processes"}, "--location_cache=shared", "--processes"},
      {{"--warmup=-1"}, "--warmup=-1", "500ms"},
      {{"--seconds=0"}, "--seconds=0", "5s or 200ms"},
      {{"--operations=0"}, "--operations=0", "give 1 to"},
      {{"-n", "5", "-D", "5"}, "--operations=5", "--seconds (-D)"},
      {{"--sample=0"}, "--sample=0", "give 1 to"},
      {{"--verify=some"}, "--verify=some", "full, head, off"},
      {{"--all", "--value_size=8"}, "--all=true", "--value_size"},
      {{"--gid_index=1"}, "--gid_index=1", "--connect=tcp"},
      {{"--floor=deep"}, "--floor=deep", "auto, off, remote"},
      {{"--kyes=1"}, "--kyes", "--keys"},
      {{"--mix=d", "--clients=1024", "--batch=4096"}, "--clients=1024", "at most"},
  };
  for (const auto& wrong : kWrong) {
    const auto options = Parse(wrong.arguments);
    KVD_REQUIRE_CODE(options, kInvalidArgument);
    const std::string message = test::MessageOf(options);
    CAPTURE(message);
    CHECK(message.find(wrong.value) != std::string::npos);
    CHECK(message.find(wrong.allowed) != std::string::npos);
  }
}

TEST_CASE("Options: help and completion know every flag") {
  const std::string help = HelpText("kvbench", "measures");
  const std::string bash = CompletionText("kvbench", "bash");
  const std::string zsh = CompletionText("kvbench", "zsh");
  for (const cli::Flag& flag : BenchFlags()) {
    const std::string name = "--" + std::string(flag.name);
    CAPTURE(name);
    CHECK(help.find(name) != std::string::npos);
    CHECK(bash.find(name) != std::string::npos);
    CHECK(zsh.find(name) != std::string::npos);
  }
  CHECK(VersionText("kvbench").starts_with("kvbench "));
}

}  // namespace
}  // namespace kvd::bench
