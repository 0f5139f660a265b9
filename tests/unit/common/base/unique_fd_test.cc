// A descriptor has one owner, and is closed exactly when that owner gives it up.
#include "common/base/unique_fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <type_traits>
#include <utility>

#include "tests/support/test.h"

namespace kvd {
namespace {

static_assert(!std::is_copy_constructible_v<UniqueFd>);
static_assert(std::is_nothrow_move_constructible_v<UniqueFd>);

int NewFd() { return eventfd(0, EFD_CLOEXEC); }

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST_CASE("UniqueFd: closes when it goes") {
  const int fd = NewFd();
  REQUIRE(fd >= 0);
  {
    const UniqueFd owner(fd);
    CHECK(owner.valid());
    CHECK(owner.get() == fd);
  }
  CHECK_FALSE(IsOpen(fd));
}

TEST_CASE("UniqueFd: moving hands the descriptor over") {
  const int fd = NewFd();
  const int replaced = NewFd();
  UniqueFd from(fd);
  UniqueFd to(replaced);
  to = std::move(from);
  CHECK_FALSE(from.valid());  // NOLINT(bugprone-use-after-move): that is what is tested
  CHECK_FALSE(IsOpen(replaced));
  CHECK(to.get() == fd);
  UniqueFd& alias = to;
  to = std::move(alias);
  CHECK(to.get() == fd);
  CHECK(IsOpen(fd));
}

TEST_CASE("UniqueFd: Release leaves it open for the caller") {
  UniqueFd owner(NewFd());
  const int fd = owner.Release();
  CHECK_FALSE(owner.valid());
  CHECK(IsOpen(fd));
  owner.Reset(fd);
  owner.Reset();
  CHECK_FALSE(IsOpen(fd));
}

TEST_CASE("UniqueFd: a negative descriptor is none") {
  UniqueFd owner(-1);
  CHECK_FALSE(owner.valid());
  owner.Reset();
  CHECK_FALSE(UniqueFd().valid());
}

}  // namespace
}  // namespace kvd
