// Passing an error on to the caller.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define KVD_STATUS_MACROS_JOIN_(a, b) a##b
#define KVD_STATUS_MACROS_JOIN(a, b) KVD_STATUS_MACROS_JOIN_(a, b)

// Evaluates an expression of type absl::Status once; returns it from the function unless it is OK.
#define KVD_RETURN_IF_ERROR(expression)                               \
  do {                                                                \
    if (::absl::Status kvd_status = (expression); !kvd_status.ok()) { \
      return kvd_status;                                              \
    }                                                                 \
  } while (false)

// KVD_ASSIGN_OR_RETURN(auto fd, Open(path)): assigns the value of a StatusOr or returns its error.
// Several statements, so not the body of an unbraced if. An expression with a comma outside of
// parentheses is fine; `lhs` with one is not.
#define KVD_ASSIGN_OR_RETURN(lhs, ...) \
  KVD_STATUS_MACROS_ASSIGN(KVD_STATUS_MACROS_JOIN(kvd_status_or_, __LINE__), lhs, (__VA_ARGS__))

#define KVD_STATUS_MACROS_ASSIGN(status_or, lhs, expression) \
  auto status_or = expression;                               \
  if (!status_or.ok()) return std::move(status_or).status(); \
  lhs = *std::move(status_or)
