// No torn or stale value is ever returned, though very many are seen; and a build in which one of
// the two safeguards is left out is caught, so the hunt would notice.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "tests/stress/hunt_value.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct Hunt {
  int exit_status = -1;
  std::map<std::string, uint64_t> counts;
  std::string output;
};

// Runs the hunt binary that environment variable `hunt` names against the kvd that `kvd` names.
Hunt RunHunt(const char* hunt, const char* kvd, const std::string& flags) {
  const std::string command = std::string(std::getenv(hunt)) + " --kvd=" + std::getenv(kvd) +
                              " --seed=" + std::to_string(Seed()) + " " + flags + " 2>&1";
  Hunt result;
  FILE* pipe = popen(command.c_str(), "r");
  char line[512];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    result.output += line;
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    if (words >> name >> value) result.counts[name] = value;
  }
  const int status = pclose(pipe);
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace

TEST_CASE("Torn-read hunt: many torn reads are seen, none is returned") {
  const Hunt hunt = RunHunt("HUNT", "KVD", "--seconds=100 --sightings=1000 --readers=4 --keys=16");
  INFO(hunt.output);
  REQUIRE(hunt.exit_status == 0);
  REQUIRE(hunt.counts.at("wrong_answers") == 0);
  REQUIRE(hunt.counts.at("torn_reads_seen") >= 1000);
  REQUIRE(hunt.counts.at("moved_items_seen") >= 1000);
  REQUIRE(hunt.counts.at("stale_locations") > 100);
}

TEST_CASE("Torn-read hunt: several writers and pollers") {
  const Hunt hunt = RunHunt("HUNT", "KVD", "--seconds=5 --writers=3 --readers=3 --keys=64");
  INFO(hunt.output);
  REQUIRE(hunt.exit_status == 0);
  REQUIRE(hunt.counts.at("wrong_answers") == 0);
}

TEST_CASE("Torn-read hunt: a client that does not compare checksums is caught") {
  const Hunt hunt = RunHunt("HUNT_WITHOUT_CHECKSUM", "KVD", "--seconds=60 --readers=4 --keys=16");
  INFO(hunt.output);
  REQUIRE(hunt.exit_status == 3);
}

TEST_CASE("Torn-read hunt: a server that does not mark replaced items DEAD is caught") {
  const Hunt hunt = RunHunt("HUNT", "KVD_WITHOUT_DEAD_MARK", "--seconds=60 --readers=4 --keys=16");
  INFO(hunt.output);
  REQUIRE(hunt.exit_status == 3);
}

TEST_CASE("Hunt values: only whole values of the right key are certified") {
  std::string value;
  for (uint64_t key = 0; key < 8; ++key) {
    for (uint64_t generation : {1u, 2u, 14u, 16u, 1000u}) {
      MakeHuntValue(key, generation, value);
      REQUIRE(CertifyHuntValue(key, value) == generation);
      REQUIRE_FALSE(CertifyHuntValue(key + 1, value).has_value());
      value.back() = static_cast<char>(value.back() ^ 1);
      REQUIRE_FALSE(CertifyHuntValue(key, value).has_value());
    }
  }
  REQUIRE(IsDelete(15));
  REQUIRE(MayBeAbsent(0, 1));
  REQUIRE(MayBeAbsent(10, 15));
  REQUIRE(MayBeAbsent(15, 15));
  REQUIRE_FALSE(MayBeAbsent(16, 30));
}

}  // namespace kvd::test
