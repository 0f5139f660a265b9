// An admission that gives itself back: Admission::Gone is called exactly once, whatever becomes of
// the session.
#pragma once

#include <cstdint>
#include <utility>

#include "common/admission/admission.h"

namespace kvd {

class AdmittedSession {
 public:
  AdmittedSession() = default;
  AdmittedSession(Admission& admission, uint64_t session_id)
      : admission_(&admission), session_id_(session_id) {}
  ~AdmittedSession() { Leave(); }
  AdmittedSession(AdmittedSession&& other) noexcept
      : admission_(std::exchange(other.admission_, nullptr)), session_id_(other.session_id_) {}
  AdmittedSession& operator=(AdmittedSession&& other) noexcept {
    if (this == &other) return *this;
    Leave();
    admission_ = std::exchange(other.admission_, nullptr);
    session_id_ = other.session_id_;
    return *this;
  }

  uint64_t session_id() const { return session_id_; }

 private:
  void Leave() {
    if (Admission* admission = std::exchange(admission_, nullptr)) admission->Gone(session_id_);
  }

  Admission* admission_ = nullptr;
  uint64_t session_id_ = 0;
};

}  // namespace kvd
