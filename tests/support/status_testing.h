// Assertions about absl::Status and absl::StatusOr.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/test.h"

namespace kvd::test {

inline absl::Status StatusOf(const absl::Status& status) { return status; }

template <typename T>
absl::Status StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// The message as a std::string, for Catch2's matchers.
template <typename T>
std::string MessageOf(const T& status_or) {
  return std::string(StatusOf(status_or).message());
}

}  // namespace kvd::test

// Both take a Status or a StatusOr and show the whole status when it is another one.
#define KVD_REQUIRE_OK(expression) REQUIRE(::kvd::test::StatusOf(expression) == ::absl::OkStatus())
#define KVD_REQUIRE_CODE(expression, expected_code)                      \
  do {                                                                   \
    const ::absl::Status kvd_status = ::kvd::test::StatusOf(expression); \
    INFO("status: " << kvd_status);                                      \
    REQUIRE(kvd_status.code() == ::absl::StatusCode::expected_code);     \
  } while (false)
