#include "client/internal/write_options.h"

namespace kvd {
namespace {

absl::Status SetCondition(const Condition& condition, const WriteOptionsAllowed& allowed, RequestHeader& header) {
  bool may = true;
  switch (condition.kind) {
    case Condition::Kind::kNone:
      break;
    case Condition::Kind::kIfAbsent:
      may = allowed.if_absent;
      header.flags |= kRequestIfAbsent;
      break;
    case Condition::Kind::kIfPresent:
      may = allowed.if_present;
      header.flags |= kRequestIfPresent;
      break;
    case Condition::Kind::kIfVersion:
      may = allowed.if_version;
      // No item has version 0.
      if (condition.version == 0) return absl::InvalidArgumentError("the version to compare with is 0; no item has that");
      header.flags |= kRequestIfVersion;
      header.compare_version = condition.version;
      break;
  }
  return may ? absl::OkStatus() : absl::InvalidArgumentError("this operation does not have that condition");
}

absl::Status SetExpiry(const WriteOptions& options, const WriteOptionsAllowed& allowed, const Clock& server_clock,
                       int64_t clock_error_us, RequestHeader& header) {
  const int64_t ttl_us = options.ttl.count();
  if (ttl_us == 0 && options.expiry_unix_us == 0) return absl::OkStatus();
  if (!allowed.expiry) return absl::InvalidArgumentError("this operation does not set an expiry");
  if (ttl_us != 0 && options.expiry_unix_us != 0) {
    return absl::InvalidArgumentError("both ttl and expiry_unix_us are set; take one");
  }
  if (ttl_us < 0 || options.expiry_unix_us < 0) {
    return absl::InvalidArgumentError("a negative time to live; to delete the key use Delete");
  }
  header.flags |= kRequestExpiry;
  header.expiry_unix_us = static_cast<uint64_t>(options.expiry_unix_us);
  if (ttl_us != 0) {
    const auto now_us = static_cast<uint64_t>(server_clock.NowUnixUs() + clock_error_us);
    header.expiry_unix_us = now_us + static_cast<uint64_t>(ttl_us);
  }
  return absl::OkStatus();
}

}  // namespace

WriteOptionsAllowed AllowedFor(Opcode opcode) {
  switch (opcode) {
    case Opcode::kPut:
      return {.if_absent = true, .if_present = true, .if_version = true, .expiry = true, .user_flags = true};
    case Opcode::kIncrement:
      return {.if_absent = true, .if_present = true, .if_version = true, .expiry = true};
    case Opcode::kAppend:
    case Opcode::kPrepend:
      return {.if_present = true, .if_version = true, .expiry = true};
    case Opcode::kTouch:
      return {.if_version = true, .expiry = true};
    case Opcode::kDelete:
      return {.if_version = true};
    default:
      return {};
  }
}

absl::Status FillHeader(Opcode opcode, const WriteOptions& options, const Clock& server_clock, int64_t clock_error_us,
                        RequestHeader& header) {
  header.opcode = static_cast<uint8_t>(opcode);
  const WriteOptionsAllowed allowed = AllowedFor(opcode);
  if (options.user_flags != 0) {
    if (!allowed.user_flags) return absl::InvalidArgumentError("this operation does not set user flags");
    header.flags |= kRequestUserFlags;
    header.user_flags = options.user_flags;
  }
  if (absl::Status set = SetCondition(options.condition, allowed, header); !set.ok()) return set;
  return SetExpiry(options, allowed, server_clock, clock_error_us, header);
}

}  // namespace kvd
