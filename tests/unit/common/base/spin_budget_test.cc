#include "common/base/spin_budget.h"

#include "catch2/catch.hpp"

namespace kvd::test {

TEST_CASE("SpinBudget: begins with all of it, and halves down to the least while it does not pay") {
  SpinBudget spin(30'000);
  CHECK(spin.ns() == 30'000);
  spin.DidNotPay();
  CHECK(spin.ns() == 15'000);
  for (int i = 0; i < 10; ++i) spin.DidNotPay();
  CHECK(spin.ns() == SpinBudget::kMinNs);
}

TEST_CASE("SpinBudget: comes back where spinning pays, and not above the most") {
  SpinBudget spin(30'000);
  for (int i = 0; i < 10; ++i) spin.DidNotPay();
  spin.Paid();
  CHECK(spin.ns() == 2 * SpinBudget::kMinNs);
  for (int i = 0; i < 10; ++i) spin.Paid();
  CHECK(spin.ns() == 30'000);
}

TEST_CASE("SpinBudget: none stays none") {
  SpinBudget spin(0);
  spin.DidNotPay();
  CHECK(spin.ns() == 0);
  spin.Paid();
  CHECK(spin.ns() == 0);
}

}  // namespace kvd::test
