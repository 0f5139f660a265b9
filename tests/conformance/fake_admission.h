// Admits up to a number of sessions to a FakeRegion and keeps the books on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol/handshake.h"
#include "common/transport/server_endpoint.h"
#include "tests/conformance/fake_region.h"

namespace kvd::test {

class FakeAdmission : public Admission {
 public:
  FakeAdmission(const FakeRegion& region, uint32_t credits, uint32_t frame_bytes)
      : region_(region), credits_(credits), frame_bytes_(frame_bytes) {}

  void set_sessions_max(size_t sessions_max) { sessions_max_ = sessions_max; }

  Welcome Admit(const PeerIdentity&, const Hello& hello) override {
    const std::lock_guard lock(mutex_);
    if (live_.size() >= sessions_max_) {
      return MakeRefusal(WelcomeStatus::kFull, "no more sessions in this test");
    }
    ++live_[++last_session_];
    Welcome welcome =
        region_.MakeWelcome(last_session_, std::min(hello.credits_wanted, credits_), frame_bytes_);
    if (role_ != Role::kNone) welcome.role = static_cast<uint32_t>(role_);
    return welcome;
  }

  // Of sessions from now on.
  void set_role(Role role) {
    const std::lock_guard lock(mutex_);
    role_ = role;
  }

  void NoteRefusal(const PeerIdentity& peer, const Hello&, std::string_view why) override {
    const std::lock_guard lock(mutex_);
    ++refused_;
    refusals_.push_back(Refusal{peer, std::string(why)});
  }
  struct Refusal {
    PeerIdentity peer;
    std::string why;
  };
  std::vector<Refusal> refusals() const {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }

  void Gone(uint64_t session_id) override {
    const std::lock_guard lock(mutex_);
    if (live_.erase(session_id) == 0) ++gone_twice_;
    ++gone_;
  }

  // While it lives, Admit waits, and so does the thread that called it.
  std::unique_lock<std::mutex> Hold() { return std::unique_lock(mutex_); }

  void CountRefusal() override {
    const std::lock_guard lock(mutex_);
    ++refused_;
  }
  size_t refused() const {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

  size_t live() const {
    const std::lock_guard lock(mutex_);
    return live_.size();
  }
  size_t gone() const {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  size_t gone_twice() const {
    const std::lock_guard lock(mutex_);
    return gone_twice_;
  }

 private:
  const FakeRegion& region_;
  const uint32_t credits_;
  const uint32_t frame_bytes_;
  mutable std::mutex mutex_;
  size_t sessions_max_ = 1000;
  uint64_t last_session_ = 0;
  std::map<uint64_t, int> live_;
  Role role_ = Role::kNone;  // kNone: as the region says
  std::vector<Refusal> refusals_;
  size_t gone_ = 0;
  size_t refused_ = 0;
  size_t gone_twice_ = 0;
};

}  // namespace kvd::test
