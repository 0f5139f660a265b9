// What instructions_test.py counts: each operation, many times over, on a store whose content is
// always the same. Under valgrind --tool=callgrind --collect-atstart=no every case ends with a dump
// that says how many operations and interruptions (uncounted.h) it had, and its name; without
// valgrind it is a check that the cases do what they say.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/kv_client.h"
#include "tests/simulation/simulated_kvd.h"
#include "tests/simulation/uncounted.h"

namespace kvd::test {
namespace {

constexpr size_t kItems = 20'000;
constexpr size_t kOperations = 1024;  // of each case
constexpr size_t kBatch = 64;
constexpr size_t kValueBytes = 64;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "count_driver: %s\n", what);
  std::exit(1);
}

std::string KeyOf(size_t number) { return absl::StrFormat("%08d", number); }
// Spread over the store, the same in every run.
std::string AnyKey(size_t i) { return KeyOf(i * 7919 % kItems); }

class Driver {
 public:
  Driver() {
    auto kvd = SimulatedKvd::Create({});
    Require(kvd.ok(), "no kvd");
    kvd_ = *std::move(kvd);
    writer_ = Connect(/*mapped=*/false, 0);
    for (size_t i = 0; i < kItems; ++i) {
      Require(writer_->Put(KeyOf(i), std::string(kValueBytes, 'v')).ok(), "a PUT failed");
    }
    for (size_t i = 0; i < kOperations; ++i) {
      keys_.push_back(AnyKey(i));
      absent_.push_back(absl::StrCat("absent", i));
      new_.push_back(KeyOf(kItems + i));
    }
  }

  void Run() {
    Nothing();
    for (const bool mapped : {false, true}) {
      const std::string transport = mapped ? "shm " : "remote ";
      Gets(transport + "GET, cold", *Connect(mapped, 0), keys_, true);
      Gets(transport + "GET, known location", *Connect(mapped, kItems * 4), keys_, true);
      Gets(transport + "GET, miss", *Connect(mapped, 0), absent_, false);
      MultiGets(transport + "MultiGet of 64, per key", *Connect(mapped, 0));
    }
    Puts("PUT in place", keys_);
    Puts("PUT of a new key", new_);
  }

 private:
  // What a call of the simulated network costs though its body is not counted.
  static void Nothing() {
    Silence silence;
    std::array<uint64_t, 4> numbers{};
    size_t sum = 0;
    Count("interruption", kOperations, [&] {
      Counting::Begin();
      for (size_t i = 0; i < kOperations; ++i) sum += silence.Poll(numbers);
      Counting::End();
    });
    Require(sum == 2 * kOperations * numbers.size(), "a call was lost");
  }
  // Its calls look like those of a channel.
  class Silence {
   public:
    [[gnu::noinline]] size_t Poll(std::span<uint64_t> numbers) {
      return Counting::Uncounted([&] {
        ++calls_;
        return numbers.size();
      });
    }

   private:
    size_t calls_ = 0;
  };

  std::unique_ptr<Client> Connect(bool mapped, uint32_t locations) {
    ClientOptions options;
    options.location_cache_entries = locations;
    auto client = kvd_->Connect(mapped, options);
    Require(client.ok(), "no client");
    return *std::move(client);
  }

  // Counts what `once` does, for each of `operations`.
  static void Count(const std::string& name, size_t operations, const std::function<void()>& once) {
    once();  // what is learned and allocated once is not counted
    const size_t interruptions_before = Counting::interruptions();
    CALLGRIND_ZERO_STATS;
    once();
    const size_t interruptions = Counting::interruptions() - interruptions_before;
    // The macro needs it to stay.
    const std::string label = absl::StrCat(operations, " ", interruptions, " ", name);
    CALLGRIND_DUMP_STATS_AT(label.c_str());
  }

  void Gets(const std::string& name, Client& client, const std::vector<std::string>& keys,
            bool found) {
    std::string value;
    bool as_expected = true;
    const uint64_t hits_before = client.counters().location_hits;
    Count(name, keys.size(), [&] {
      Counting::Begin();
      for (const std::string& key : keys) as_expected &= client.Get(key, value).ok() == found;
      Counting::End();
    });
    Require(as_expected, "a GET did not find what is there, or found what is not");
    const bool known = client.counters().location_hits - hits_before > keys.size() * 9 / 10;
    Require(known == (name.find("known") != std::string::npos),
            "locations are not as the case says");
  }

  void MultiGets(const std::string& name, Client& client) {
    std::vector<std::string_view> keys(keys_.begin(), keys_.end());
    std::vector<GetResult> results(kBatch);
    bool found = true;
    Count(name, keys.size(), [&] {
      Counting::Begin();
      for (size_t i = 0; i < keys.size(); i += kBatch) {
        static_cast<void>(client.MultiGet(std::span(keys).subspan(i, kBatch), results));
        for (const GetResult& result : results) found &= result.status.ok();
      }
      Counting::End();
    });
    Require(found, "a MultiGet did not find what is there");
  }

  void Puts(const std::string& name, const std::vector<std::string>& keys) {
    const std::string value(kValueBytes, 'w');
    bool stored = true;
    const auto put_all = [&](auto put) {
      for (const std::string& key : keys) {
        stored &= put(key);
        // The new ones are new again the next time.
        if (&keys == &new_) Require(writer_->Delete(key).ok(), "a DELETE failed");
      }
    };
    Count("client " + name, keys.size(), [&] {
      put_all([&](const std::string& key) {
        Counting::Begin();
        const bool ok = writer_->Put(key, value).ok();
        Counting::End();
        return ok;
      });
    });
    Count("poller " + name, keys.size(), [&] {
      put_all([&](const std::string& key) {
        kvd_->set_count_turns(true);
        const bool ok = writer_->Put(key, value).ok();
        kvd_->set_count_turns(false);
        return ok;
      });
    });
    Require(stored, "a PUT failed");
  }

  std::unique_ptr<SimulatedKvd> kvd_;
  std::unique_ptr<Client> writer_;
  std::vector<std::string> keys_;
  std::vector<std::string> absent_;
  std::vector<std::string> new_;
};

}  // namespace
}  // namespace kvd::test

int main() {
  kvd::test::Driver().Run();
  return 0;
}
