// The doctor's checks of a server, against a map that misbehaves on demand.
#include "client/cli/doctor_server.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "common/base/build_info.h"
#include "common/base/units.h"
#include "tests/support/fake_clock.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/fake_store.h"

namespace kvd::cli::test {
namespace {

using kvd::verbs::CheckOutcome;
using kvd::verbs::CheckResult;

// Spoils what a GET returns, takes time, or answers by request.
class BadStore : public FakeStore {
 public:
  BadStore(FakeServer& server, kvd::test::FakeClock& clock) : FakeStore(server), clock_(clock) {}

  absl::Status Get(std::string_view key, std::string& value, ItemInfo& info) override {
    clock_.AdvanceNs(get_ns);
    ++gets_;
    if (get_error.has_value()) return *get_error;
    const absl::Status got = FakeStore::Get(key, value, info);
    if (got.ok() && spoil != nullptr) spoil(value);
    return got;
  }
  absl::Status Delete(std::string_view key, const WriteOptions& options = {}) override {
    return delete_error.ok() ? FakeStore::Delete(key, options) : delete_error;
  }
  absl::StatusOr<std::chrono::nanoseconds> PlainRead(uint64_t bytes) override {
    if (!floor.has_value()) return FakeStore::PlainRead(bytes);
    return *floor;
  }
  uint64_t GetsByRequest() const override { return by_request ? gets_ : 0; }

  std::function<void(std::string&)> spoil;
  std::optional<absl::Status> get_error;
  absl::Status delete_error;
  int64_t get_ns = 1000;
  std::optional<absl::StatusOr<std::chrono::nanoseconds>> floor;  // nothing: shared memory
  bool by_request = false;

 private:
  kvd::test::FakeClock& clock_;
  uint64_t gets_ = 0;
};

struct Rig {
  FakeServer server;
  kvd::test::FakeClock clock;
  BadStore store{server, clock};
  ServerCheckOptions options;

  Rig() {
    server.statistics = {
        {"version", std::string(kvd::Version())}, {"pid", "42"}, {"max_value_bytes", "67108864"}};
    options.key_prefix = "kvcli-doctor:0123:";
    options.seed = kvd::test::Seed();
    options.interrupted = [] { return false; };
  }

  DoctorReport Run() {
    DoctorReport report;
    CheckServer(store, clock, options, report);
    return report;
  }
};

CheckResult Find(const DoctorReport& report, const std::string& check) {
  for (const CheckResult& result : report.results) {
    if (result.check == check) return result;
  }
  FAIL("no line for " << check);
  return {};
}

TEST_CASE("Doctor: a good server passes at every size, and no key is left") {
  Rig rig;
  rig.server.Insert("mine", "stays");
  const DoctorReport report = rig.Run();
  INFO(FormatReport(OutputFormat::kSimple, report));
  CHECK(report.exit == ExitCode::kDone);
  CHECK(report.failed() == 0);
  for (const CheckResult& result : report.results) CHECK(result.outcome == CheckOutcome::kOk);
  for (const char* size : {"64 B", "2 KiB", "8 KiB", "64 KiB", "1 MiB", "4 MiB"}) {
    CHECK_THAT(Find(report, std::string("READ ") + size).found, Catch::Contains("the bytes that"));
    Find(report, std::string("PUT ") + size);
  }
  CHECK_THAT(Find(report, "READ 64 B").found,
             Catch::Contains("1.0 us in the median, by rule of thumb under 20 us"));
  CHECK(rig.server.items.size() == 1);
}

TEST_CASE("Doctor: a byte that differs is corrupt data, at its place, and the key still goes") {
  Rig rig;
  rig.store.spoil = [](std::string& value) {
    if (value.size() == 64 * kKiB) value[4097] = static_cast<char>(value[4097] ^ 1);
  };
  const DoctorReport report = rig.Run();
  const CheckResult result = Find(report, "READ 64 KiB");
  CHECK(result.outcome == CheckOutcome::kFailed);
  CHECK(result.found == "got 65536 bytes of 65536, different from byte 4097 on");
  CHECK(!result.remedy.empty());
  CHECK(report.exit == ExitCode::kCorrupt);
  CHECK(rig.server.items.empty());
}

TEST_CASE("Doctor: a value that came back short or is not there is corrupt data") {
  Rig rig;
  rig.store.spoil = [](std::string& value) { value.resize(10); };
  DoctorReport report = rig.Run();
  CHECK(Find(report, "READ 64 B").found == "got 10 bytes of 64, different from byte 10 on");
  rig.store.get_error = absl::NotFoundError("no such key");
  report = rig.Run();
  CHECK_THAT(Find(report, "READ 64 B").found, Catch::Contains("not there"));
  CHECK(report.exit == ExitCode::kCorrupt);
}

TEST_CASE("Doctor: a server that refuses says why, with the exit code of that") {
  Rig rig;
  rig.server.put_errors["kvcli-doctor:0123:64"] =
      absl::ResourceExhaustedError("the region is full");
  DoctorReport report = rig.Run();
  CHECK(Find(report, "PUT 64 B").found == "the region is full");
  CHECK_THAT(Find(report, "PUT 64 B").remedy, Catch::Contains("--memory"));
  CHECK(report.exit == ExitCode::kRefused);

  rig.store.get_error = absl::DeadlineExceededError(
      "no READ completed: packets over 1024 bytes "
      "are dropped; set one MTU on the path");
  rig.server.put_errors.clear();
  report = rig.Run();
  CHECK(Find(report, "READ 64 B").remedy == "set one MTU on the path");
  CHECK(report.exit == ExitCode::kDeadline);

  rig.server.operation_error = absl::UnavailableError("it went away");
  report = rig.Run();
  CHECK(Find(report, "admitted").found == "it went away");
  CHECK(report.exit == ExitCode::kCannotConnect);
  CHECK(report.results.size() == 1);
}

TEST_CASE("Doctor: a key that could not be deleted is named") {
  Rig rig;
  rig.store.delete_error = absl::UnavailableError("it went away");
  const DoctorReport report = rig.Run();
  CHECK_THAT(Find(report, "clean up").found, Catch::Contains("kvcli-doctor:0123:64"));
  CHECK(Find(report, "clean up").remedy == "kvcli del kvcli-doctor:0123:64");
}

TEST_CASE("Doctor: a session that may only read leaves no key, and is not said to") {
  Rig rig;
  rig.store.delete_error = absl::PermissionDeniedError("this session may only read");
  rig.server.put_errors["kvcli-doctor:0123:64"] = rig.store.delete_error;
  const DoctorReport report = rig.Run();
  CHECK(Find(report, "PUT 64 B").found == "this session may only read");
  for (const CheckResult& result : report.results) CHECK(result.check != "clean up");
}

TEST_CASE("Doctor: slow is a warning, never a failure") {
  Rig rig;
  rig.store.get_ns = 50'000'000;
  const DoctorReport report = rig.Run();
  CHECK(Find(report, "READ 64 B").outcome == CheckOutcome::kWarning);
  CHECK(report.exit == ExitCode::kDone);
}

TEST_CASE("Doctor: GETs that the server had to answer are no READs") {
  Rig rig;
  rig.store.by_request = true;
  const DoctorReport report = rig.Run();
  CHECK(Find(report, "READ 64 B").outcome == CheckOutcome::kWarning);
  CHECK_THAT(Find(report, "READ 64 B").found, Catch::Contains("200 of 200"));
}

TEST_CASE("Doctor: values over the server's limit are not tried, another version is a warning") {
  Rig rig;
  rig.server.statistics = {{"version", "99.1.0"}, {"pid", "42"}, {"max_value_bytes", "100000"}};
  const DoctorReport report = rig.Run();
  CHECK_THAT(Find(report, "READ 4 MiB").found, Catch::Contains("not tried"));
  CHECK(Find(report, "version").outcome == CheckOutcome::kWarning);
  CHECK(report.exit == ExitCode::kDone);
}

TEST_CASE(
    "Doctor: a kvd that evicts gets no values for which it would evict, unless that is asked for") {
  Rig rig;
  rig.server.statistics.emplace_back("evict", "lru");
  // Whatever is longer than 8 KiB does harm.
  rig.server.put_errors["kvcli-doctor:0123:65536"] = absl::InternalError("evicted");
  rig.server.put_errors["kvcli-doctor:0123:1048576"] = absl::InternalError("evicted");
  rig.server.put_errors["kvcli-doctor:0123:4194304"] = absl::InternalError("evicted");
  DoctorReport report = rig.Run();
  INFO(FormatReport(OutputFormat::kSimple, report));
  CHECK(report.exit == ExitCode::kDone);
  CHECK_THAT(Find(report, "evict").found, Catch::Contains("nothing over 8 KiB is put there") &&
                                              Catch::Contains("may lose a few items"));
  Find(report, "PUT 8 KiB");
  for (const char* check : {"READ 64 KiB", "READ 1 MiB", "READ 4 MiB"}) {
    CHECK(Find(report, check).found ==
          "not tried: the server may evict items for it; --large_values tries it");
  }

  rig.server.put_errors.clear();
  rig.options.large_values = true;
  report = rig.Run();
  CHECK_THAT(Find(report, "evict").found, Catch::Contains("may have cost it items"));
  CHECK_THAT(Find(report, "READ 4 MiB").found, Catch::Contains("the bytes that"));

  rig.server.statistics.back() = {"evict", "none"};
  rig.options.large_values = false;
  report = rig.Run();
  CHECK_THAT(Find(report, "READ 4 MiB").found, Catch::Contains("the bytes that"));
  for (const CheckResult& result : report.results) CHECK(result.check != "evict");
}

TEST_CASE("Doctor: Ctrl-C ends the checks and leaves no key") {
  Rig rig;
  int asked = 0;
  rig.options.interrupted = [&asked] { return ++asked > 30; };
  const DoctorReport report = rig.Run();
  CHECK(rig.server.items.empty());
  for (const CheckResult& result : report.results) CHECK(result.check != "READ 4 MiB");
}

TEST_CASE("Doctor: the report as lines, table and JSON, whatever a server put into it") {
  DoctorReport report;
  report.AddOk("connect", "to \x1b[31m");
  report.AddFailed("READ 64 B", {ExitCode::kDeadline, "nothing came; see the link"});
  CHECK(report.exit == ExitCode::kDeadline);
  CHECK(FormatReport(OutputFormat::kSimple, report) ==
        "ok       connect    to \\x1b[31m\n"
        "failed   READ 64 B  nothing came; see the link\n");
  CHECK_THAT(FormatReport(OutputFormat::kTable, report), Catch::Contains("| WHAT TO DO"));
  const auto json = nlohmann::json::parse(FormatReport(OutputFormat::kJson, report));
  CHECK(json["failed"] == 1);
  CHECK(json["checks"][1]["outcome"] == "failed");
  CHECK(json["checks"][1]["remedy"] == "see the link");
}

TEST_CASE("Doctor: over RDMA a time is set against the floor of the same moment") {
  Rig rig;
  rig.store.floor = std::chrono::nanoseconds(800);
  DoctorReport report = rig.Run();
  CHECK_THAT(Find(report, "floor").found,
             Catch::Contains("READ of 64 B takes 0.8 us") && Catch::Contains("answer 10.0 us"));
  CHECK(Find(report, "READ 4 MiB").found ==
        "4 times the bytes that were put, 1.0 us in the median, 1.2 times a plain READ of as many "
        "bytes (0.8 us)");
  CHECK_THAT(Find(report, "PUT 64 B").found,
             Catch::Contains("a request and a READ of as many bytes (10.8 us)"));
  CHECK(Find(report, "READ 64 B").outcome == CheckOutcome::kOk);
  rig.store.get_ns = 3300;  // over four times that, however fast it may seem
  report = rig.Run();
  CHECK(Find(report, "READ 64 B").outcome == CheckOutcome::kWarning);
  CHECK(!Find(report, "READ 64 B").remedy.empty());
  CHECK(report.exit == ExitCode::kDone);
}

TEST_CASE("Doctor: where no plain READ can be had, it says so and judges no time") {
  Rig rig;
  rig.store.floor = absl::UnavailableError("the server is full");
  rig.store.get_ns = 50'000'000;
  const DoctorReport report = rig.Run();
  CHECK(Find(report, "floor").outcome == CheckOutcome::kWarning);
  CHECK_THAT(Find(report, "floor").found, Catch::Contains("the server is full"));
  CHECK(Find(report, "READ 64 B").outcome == CheckOutcome::kOk);
  CHECK_THAT(Find(report, "READ 64 B").found, Catch::EndsWith("50000.0 us in the median"));
}

}  // namespace
}  // namespace kvd::cli::test
