// The kvd binary as somebody at a terminal meets it: flags, texts, exit statuses.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/base/unique_fd.h"
#include "tests/e2e/kvd_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Usage errors: exit 2, one line that names what was given and what would do.
void CheckUsage(const std::vector<std::string>& arguments, const std::vector<std::string>& texts) {
  const Ended ended = RunKvd(arguments);
  INFO(ended.err);
  CHECK(ended.exit_code == 2);
  CHECK(ended.out.empty());
  CHECK(Lines(ended.err) == 1);
  for (const std::string& text : texts) CHECK_THAT(ended.err, Catch::Contains(text));
}

// 78: nor would it the next time; 1: perhaps later.
void CheckCannotStart(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& texts, int exit_code = 78) {
  Ended ended = RunKvd(arguments);
  INFO(ended.err);
  CHECK(ended.exit_code == exit_code);
  CHECK(Lines(ended.err) == 1);
  for (const std::string& text : texts) CHECK_THAT(ended.err, Catch::Contains(text));
  std::vector<std::string> checked = arguments;
  checked.push_back("--check");
  ended = RunKvd(checked);
  CHECK(ended.exit_code == 78);
  for (const std::string& text : texts) CHECK_THAT(ended.err, Catch::Contains(text));
}

// The port of a socket that listens at 127.0.0.1.
uint16_t PortOf(int listener) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  return ntohs(address.sin_port);
}

UniqueFd ListenSomewhere() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(listen(listener.get(), 1) == 0);
  return listener;
}

// As kvd's log says it.
std::string AdminPortIn(const std::string& log) {
  constexpr char kBefore[] = "admin endpoint: http://127.0.0.1:";
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(kBefore);
    if (at != line.npos) return std::to_string(std::stoi(line.substr(at + sizeof(kBefore) - 1)));
  }
  FAIL("no admin endpoint in the log");
  return "";
}

}  // namespace

TEST_CASE("kvd --help and -h show its own flags with units and defaults and exit with 0") {
  const Ended help = RunKvd({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  for (const char* flag : {"--memory=BYTES", "--shm=PATH", "--pollers=N", "--poll=MODE",
                           "--hugepages=POLICY", "--max_value=BYTES", "--max_clients=N",
                           "--bucket_bytes=BYTES", "--check", "--version", "--flagfile=PATH"}) {
    CHECK_THAT(help.out, Catch::Contains(flag));
  }
  CHECK_THAT(help.out, Catch::Contains("(default 64m)"));
  CHECK_THAT(help.out, !Catch::Contains("logtostderr"));
  CHECK(RunKvd({"-h"}).out == help.out);
}

TEST_CASE("kvd --version and -V print it and exit with 0") {
  const Ended version = RunKvd({"--version"});
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, Catch::StartsWith("kvd "));
  CHECK(RunKvd({"-V"}).out == version.out);
}

TEST_CASE("kvd: usage errors exit with 2 and one line") {
  CheckUsage({"--memry=1g"}, {"unknown flag --memry", "did you mean --memory?"});
  CheckUsage({"--nothing_like_it"}, {"--nothing_like_it", "kvd --help"});
  CheckUsage({"-z"}, {"-z"});
  CheckUsage({"stray"}, {"'stray'"});
  CheckUsage({"--memory=12q"}, {"--memory=12q: expected a number of bytes"});
  CheckUsage({"--memory=-1"}, {"--memory=-1"});
  CheckUsage({"--memory="}, {"--memory="});
  CheckUsage({"--memory"}, {"--memory needs a value"});
  // A flag is not swallowed as the value of the one before it.
  CheckUsage({"--shm", "--check"},
             {"--shm needs a value, and --check looks like a flag: --shm=PATH"});
  CheckUsage({"-s", "-v"}, {"-s needs a value, and -v looks like a flag: --shm=PATH"});
  CheckUsage({"--flagfile", "--check"}, {"--flagfile=PATH"});
  for (const char* listen : {"10.0.0.1", "10.0.0.1:", "10.0.0.1:x", "fe80::1:7711", "7711"}) {
    CheckUsage(
        {std::string("--listen=") + listen, "--insecure"},
        {std::string("--listen=") + listen + ": expected ADDRESS:PORT such as 10.0.0.1:7711"});
  }
  CheckUsage({"--memory=99999999999999999999g"}, {"--memory=", "2^64"});
  CheckUsage({"--check", "--memory=abc"}, {"--memory=abc"});
  CheckUsage({"--poll=sometimes"}, {"--poll=sometimes", "adaptive, busy, event"});
  CheckUsage({"--hugepages=yes"}, {"--hugepages=yes", "prefer, require, off"});
  CheckUsage({"--pollers=0"}, {"--pollers=0", "from 1 to 256"});
  CheckUsage({"--pollers=two"}, {"--pollers=two"});
  CheckUsage({"--max_clients=0"}, {"--max_clients=0"});
  CheckUsage({"--bucket_bytes=1000"}, {"--bucket_bytes=1000", "512"});
  CheckUsage({"--shm_mode=9"}, {"--shm_mode=9", "octal"});
  CheckUsage({"--check=maybe"}, {"--check takes no value"});
  CheckUsage({"--flagfile=/does/not/exist"}, {"/does/not/exist"});
  CheckUsage({"--flagfile=/"}, {"--flagfile=/: cannot be read"});
}

TEST_CASE(
    "kvd: what cannot be started exits with 78, or with 1 if it may be later, naming the remedy") {
  TempDir dir;
  const std::string shm = "--shm=" + dir.Join("s");
  CheckCannotStart({shm, "--memory=1k"}, {"--memory=1024", "minimum", "1 poller\n"});
  CheckCannotStart({shm, "--memory=64"}, {"for 1 poller; did you mean --memory=64m?"});
  CheckCannotStart({shm, "--memory=4000t"}, {"--memory=", "more than this machine"}, 1);
  CheckCannotStart({shm, "--max_value=64m", "--memory=64m"}, {"--max_value=67108864", "16777216"});
  CheckCannotStart({"--shm=" + std::string(200, 'x')}, {"200 bytes", "107"});
  CheckCannotStart({"--shm="}, {"--shm="});
  CheckCannotStart({"--shm=" + dir.Join("missing/s")}, {dir.Join("missing"), "does not exist"});
  std::ofstream(dir.Join("file")) << "x";
  CheckCannotStart({"--shm=" + dir.Join("file")}, {"not a socket"});
  CHECK(std::filesystem::exists(dir.Join("file")));
  CHECK_FALSE(std::filesystem::exists(dir.Join("file.lock")));
  CHECK_FALSE(std::filesystem::exists(dir.Join("s.lock")));
}

TEST_CASE("kvd: an --audit that cannot be is found out before memory is taken, and by --check") {
  TempDir dir;
  const std::string shm = "--shm=" + dir.Join("s");
  const auto audit = [](const std::string& path) { return "--audit=" + path; };
  CheckCannotStart({shm, audit(dir.path())}, {audit(dir.path()), "is a directory; name a file"});
  CheckCannotStart({shm, audit(dir.Join("no/such"))}, {audit(dir.Join("no/such")), "No such file"});
  CheckCannotStart({shm, audit("/proc/x")}, {audit("/proc/x"), "No such file"});
  std::filesystem::create_symlink("target", dir.Join("link"));
  CheckCannotStart({shm, audit(dir.Join("link"))}, {"is a symbolic link"});
  std::ofstream(dir.Join("open")) << "{}\n";
  std::filesystem::permissions(dir.Join("open"), std::filesystem::perms(0666));
  CheckCannotStart({shm, audit(dir.Join("open"))}, {"(mode 0666)", "chmod go-w"});
  // Not by --check, which does not open it.
  REQUIRE(mkfifo(dir.Join("fifo").c_str(), 0600) == 0);
  const Ended ended = RunKvd({shm, audit(dir.Join("fifo"))});
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.err, Catch::Contains("is a FIFO that nobody reads; start its reader first"));
  CHECK(RunKvd({shm, audit(dir.Join("new")), "--check"}).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(dir.Join("new")));
}

TEST_CASE("kvd: --listen without an RDMA device is found out before memory is taken") {
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    KVD_SKIP("this machine has " + device.path().filename().string());
  }
  TempDir dir;
  // One line: the one about the region, which is logged once it is taken, does not come before it.
  CheckCannotStart({"--shm=" + dir.Join("s"), "--listen=127.0.0.1:7711"}, {"RDMA"}, 1);
  const Ended ended = RunKvd({"--shm=" + dir.Join("s"), "--listen=127.0.0.1:7711"});
  CHECK_THAT(ended.err, Catch::StartsWith("kvd: cannot start: --listen=127.0.0.1:7711: ") &&
                            Catch::EndsWith("; or leave --listen out: shared memory needs no "
                                            "device\n"));
  CHECK_THAT(ended.err, Catch::Contains("to try Soft-RoCE") || Catch::Contains("--device="));
}

TEST_CASE("kvd --help names the suffixes of sizes, and each exit status") {
  const std::string help = RunKvd({"--help"}).out;
  std::string line;
  for (std::istringstream lines(help); std::getline(lines, line);) {
    if (line.find("=BYTES") == std::string::npos || line.find("bucket") != std::string::npos)
      continue;
    CHECK_THAT(line, Catch::Contains("suffixes k, m, g, t"));
  }
  for (const char* status : {"0 done", "1 cannot start", "2 usage", "78 --check failed"}) {
    CHECK_THAT(help, Catch::Contains(status));
  }
}

TEST_CASE("kvd: hugepages that must be there and are not are counted in the message") {
  TempDir dir;
  std::ifstream free_pages("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  int count = 0;
  free_pages >> count;
  if (count >= 32) KVD_SKIP("this machine has free hugepages");
  CheckCannotStart({"--shm=" + dir.Join("s"), "--hugepages=require"},
                   {"--hugepages=require: need 32 x 2 MiB hugepages, free ",
                    "; sysctl vm.nr_hugepages=32 or --hugepages=off\n"},
                   1);
  CHECK_FALSE(std::filesystem::exists(dir.Join("s.lock")));
}

TEST_CASE("kvd --check beside a kvd of the same socket is for when that has ended") {
  TempDir dir;
  const std::vector<std::string> flags = {"--shm=" + dir.Join("s"), "--hugepages=off",
                                          "--memory=64m"};
  const UniqueFd taken = ListenSomewhere();
  const std::string admin = "--admin=" + std::to_string(PortOf(taken.get()));
  std::vector<std::string> running = flags;
  running.push_back("--admin=0");
  const UniqueFd log(open(dir.Join("log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  KvdProcess kvd({.arguments = running, .environment = {}, .error_fd = log.get()});
  REQUIRE(kvd.WaitReady());
  const std::string own_admin = "--admin=" + AdminPortIn(dir.Join("log"));
  const auto check = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = flags;
    all.push_back("--check");
    all.insert(all.end(), more.begin(), more.end());
    return RunKvd(all);
  };
  Ended ended = check({own_admin});
  INFO(ended.err);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.out, Catch::Contains("running: a kvd (pid " + std::to_string(kvd.pid()) + ")"));
  // What is wrong is wrong all the same.
  CHECK(check({"--keys=" + dir.Join("none")}).exit_code == 78);
  CHECK(check({"--memory=4000t"}).exit_code == 78);
  CHECK_THAT(check({"--memory=4000t"}).err, Catch::Contains("once the kvd that runs has ended"));
  // Nor does another program give up its port then.
  ended = check({admin});
  CHECK(ended.exit_code == 78);
  CHECK_THAT(ended.err, Catch::Contains("is in use"));
  // Not that of the kvd that runs.
  ended = RunKvd({"--shm=" + dir.Join("other"), "--memory=64m", "--check", admin});
  CHECK(ended.exit_code == 78);
  CHECK_THAT(ended.err, Catch::Contains("is in use"));
}

TEST_CASE("kvd --check prints the plan, exits with 0 and leaves nothing running") {
  TempDir dir;
  const Ended ended = RunKvd({"--check", "-m", "128", "-t", "2", "-c", "7", "-s", dir.Join("s"),
                              "--poll=event", "--hugepages=off"});
  INFO(ended.err);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.out, Catch::Contains("memory: 128 MiB, hugepages off"));
  CHECK_THAT(ended.out, Catch::Contains("pollers: 2, event"));
  CHECK_THAT(ended.out, Catch::Contains("clients: at most 7"));
  CHECK_THAT(ended.out, Catch::Contains("largest value: 32 MiB"));
  CHECK_THAT(ended.out, Catch::Contains(dir.Join("s")));
  CHECK(std::filesystem::is_empty(dir.path()));
}

TEST_CASE("kvd --flagfile: flags one a line, comments, and errors with file and line") {
  TempDir dir;
  const std::string path = dir.Join("kvd.flags");
  std::ofstream(path) << "# memory\n--memory=96m\n\n  --max_clients=5\n--shm=" << dir.Join("s")
                      << "\n";
  const Ended ended = RunKvd({"--check", "--flagfile=" + path, "--max_clients=9"});
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.out, Catch::Contains("memory: 96 MiB"));
  CHECK_THAT(ended.out, Catch::Contains("clients: at most 9"));
  std::ofstream(path) << "\t# all of it\n--memory = 96m   # much\n-c 7 # few\n--pollers\t2\n"
                      << "--shm=" << dir.Join("a#b") << "\n-v\n";
  const Ended lenient = RunKvd({"--check", "--flagfile=" + path});
  INFO(lenient.err);
  CHECK(lenient.exit_code == 0);
  CHECK_THAT(lenient.out, Catch::Contains("memory: 96 MiB"));
  CHECK_THAT(lenient.out, Catch::Contains("clients: at most 7"));
  CHECK_THAT(lenient.out, Catch::Contains("pollers: 2"));
  CHECK_THAT(lenient.out, Catch::Contains(dir.Join("a#b")));
  std::ofstream(path) << "memory=8m\n";
  CheckUsage({"--flagfile=" + path}, {path + ":1:", "did you mean --memory=8m?"});
  std::ofstream(path) << "--memory=96m\n--poll=never\n";
  CheckUsage({"--flagfile=" + path}, {path + ":2:", "--poll=never"});
  std::ofstream(path) << "--memory=32m --evict=lru\n";
  CheckUsage({"--flagfile=" + path}, {path + ":1:", "; write one flag a line"});
  std::ofstream(path) << "--flagfile=" << path << "\n";
  CheckUsage({"--flagfile=" + path}, {"names itself"});
}

TEST_CASE("kvd --shm takes the socket as kvcli's --server names it") {
  TempDir dir;
  const Ended ended = RunKvd({"--check", "--shm=shm:" + dir.Join("s")});
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.out, Catch::Contains("shared memory: " + dir.Join("s") + "\n"));
}

TEST_CASE("kvd: more pollers than cores is a warning") {
  TempDir dir;
  const Ended ended = RunKvd({"--check", "--shm=" + dir.Join("s"), "-t", "200", "-m", "1024"});
  INFO(ended.err);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.out, Catch::Contains("warning: --pollers=200"));
}

}  // namespace kvd::test
