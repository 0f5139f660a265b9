// Allocations of kvd's that fail while clients connect, work and leave, and while its admin pages
// are asked for: errors, and a kvd that goes on. Any of them, or those of KVD_TEST_FAILING_BYTES and
// more.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "common/base/unique_fd.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;

uint64_t FailingBytesMin() {
  const char* const text = std::getenv("KVD_TEST_FAILING_BYTES");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

// What libfail_malloc.so goes by.
struct Control {
  std::atomic<uint64_t> one_in;  // 0: none fails
  std::atomic<uint64_t> failed;
  std::atomic<uint64_t> state;
  std::atomic<uint64_t> bytes_min;  // shorter ones do not fail
};

class ForgetfulKvd {
 public:
  explicit ForgetfulKvd(uint64_t seed) {
    const UniqueFd fd(memfd_create("malloc", 0));
    REQUIRE(ftruncate(fd.get(), sizeof(Control)) == 0);
    void* const at =
        mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    REQUIRE(at != MAP_FAILED);
    control_ = static_cast<Control*>(at);
    control_->state = seed;
    control_->bytes_min = FailingBytesMin();
    setenv("KVD_TEST_MALLOC", ("/proc/self/fd/" + std::to_string(fd.get())).c_str(), 1);
    setenv("LD_PRELOAD", std::getenv("FAIL_MALLOC"), 1);
    const absl::Status started =
        kvd_.Start(std::getenv("KVD"), {"--memory=32m", "--pollers=2", "--admin=127.0.0.1:0"});
    unsetenv("LD_PRELOAD");
    unsetenv("KVD_TEST_MALLOC");
    KVD_REQUIRE_OK(started);
    const std::string log = kvd_.Log();
    const size_t at_port = log.find("http://127.0.0.1:");
    REQUIRE(at_port != std::string::npos);
    port_ = static_cast<uint16_t>(std::atoi(log.c_str() + at_port + 17));
  }
  ~ForgetfulKvd() { munmap(control_, sizeof(Control)); }

  void FailOneIn(uint64_t n) { control_->one_in = n; }
  uint64_t failed() const { return control_->failed; }
  const KvdProcess& process() const { return kvd_; }

  // Whatever it answers; empty if it does not.
  std::string AskAdmin(const std::string& path) const {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return "";
    const timeval patience{5, 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    if (send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
    std::string answer;
    char piece[4096];
    for (ssize_t got; (got = recv(fd.get(), piece, sizeof(piece), 0)) > 0;) {
      answer.append(piece, static_cast<size_t>(got));
    }
    return answer;
  }

 private:
  Control* control_ = nullptr;
  KvdProcess kvd_;
  uint16_t port_ = 0;
};

}  // namespace

TEST_CASE(
    "Out of memory: clients get errors, kvd goes on, and all is well when there is memory again") {
  Random random(Seed());
  ForgetfulKvd kvd(Seed());
  ClientOptions impatient;
  impatient.wait_for_server = false;
  impatient.deadline = milliseconds(500);
  std::map<std::string, std::string> written;
  uint64_t connected = 0;
  uint64_t answered = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    kvd.FailOneIn(random.Between(2, 60));
    auto client = Client::Connect(kvd.process().target(), impatient);
    if (client.ok()) {
      ++connected;
      for (int i = 0; i < 10; ++i) {
        const std::string key = "key " + std::to_string(random.Uniform(50));
        const std::string value(random.OneIn(4) ? 100'000 : 100,
                                static_cast<char>('a' + random.Uniform(26)));
        static_cast<void>((*client)->Put(key, value));
        static_cast<void>((*client)->Increment("number", 1));
        std::string got;
        const absl::Status status = (*client)->Get(key, got);
        // Each value is of one letter.
        if (!status.ok()) continue;
        const size_t other = got.find_first_not_of(got[0]);
        INFO(key << ": " << got.size() << " bytes, '" << got[0] << "' up to " << other);
        REQUIRE(other == std::string::npos);
      }
      static_cast<void>((*client)->Stats());
    }
    for (const char* path : {"/metrics", "/", "/sessions"})
      answered += kvd.AskAdmin(path).empty() ? 0 : 1;
    kvd.FailOneIn(0);
    INFO("round " << round << "\n" << kvd.process().Log());
    REQUIRE(Eventually([&] { return Client::Connect(kvd.process().target(), impatient).ok(); }));
  }
  const auto client = ConnectTo(kvd.process());
  REQUIRE(Eventually([&] { return Stat(*client, "sessions") == 1; }));
  KVD_REQUIRE_OK(client->Put("key", "value"));
  CHECK_THAT(kvd.AskAdmin("/metrics"), Catch::Contains("kvd_"));
  CHECK(kvd.failed() > 100);
  std::cout << "failed_allocations " << kvd.failed() << "\nconnected " << connected << "\nanswered "
            << answered << "\n";
}

}  // namespace kvd::test
