#include "common/base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "common/base/errno_status.h"

namespace kvd {

absl::StatusOr<uint64_t> RandomU64FromOs() {
  uint64_t value = 0;
  ssize_t count;
  do {
    count = getrandom(&value, sizeof(value), 0);  // never short for 256 bytes or less
  } while (count < 0 && errno == EINTR);
  if (count < 0) return ErrnoStatus("getrandom");
  KVD_CHECK(count == static_cast<ssize_t>(sizeof(value)));
  return value;
}

}  // namespace kvd
