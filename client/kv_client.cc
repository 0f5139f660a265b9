#include "client/kv_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/connector.h"
#include "client/internal/fork_guard.h"
#include "client/internal/reply_status.h"
#include "client/internal/scanner.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

absl::Status CheckKey(std::string_view key) {
  if (!key.empty() && key.size() <= kKeyBytesMax) [[likely]] {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      key.empty() ? "the key is empty; keys have 1 to 4096 bytes"
                  : absl::StrCat("the key has ", key.size(), " bytes; keys have 1 to ", kKeyBytesMax));
}

ItemInfo InfoOf(const ItemView& item) {
  return {item.version, item.user_flags, static_cast<int64_t>(item.expiry_unix_us)};
}

}  // namespace

class Client::Impl {
 public:
  Impl(Connector connector, const ClientOptions& options, std::unique_ptr<Session> session)
      : connector_(std::move(connector)),
        default_deadline_ns_(options.deadline.count()),
        session_(std::move(session)),
        fork_generation_(ForkGeneration()) {}

  // True in a child of the process that made this client.
  bool forked() const { return ForkGeneration() != fork_generation_; }

  const std::string& target() const { return connector_.target().name; }

  // Finds the key's item and calls `use(const ItemView&)` while its bytes are valid. NotFound if there is none.
  template <typename Use>
  absl::Status WithItem(std::string_view key, const OperationOptions& options, const Use& use) {
    ItemView item;
    if (FindInWindow(key, item)) [[likely]] {
      return use(item);
    }
    return WithItemByMachine(key, options, use);
  }

  // Sends a request and waits for its reply, which is valid until the next call.
  absl::StatusOr<ReplyView> Request(Opcode opcode, std::string_view key, std::string_view payload, uint64_t argument,
                                    const OperationOptions& options) {
    KVD_RETURN_IF_ERROR(EnsureSession(options));
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(opcode);
    header.argument = argument;
    absl::StatusOr<ReplyView> reply = session_->requester.Call(header, key, payload, DeadlineNs(options));
    if (!reply.ok()) {
      NoteFailure();
      return reply;
    }
    KVD_RETURN_IF_ERROR(StatusOfReply(*reply, payload.size()));
    return reply;
  }

  absl::Status Scan(const Visitor& visit, const OperationOptions& options) {
    KVD_RETURN_IF_ERROR(EnsureSession(options));
    const int64_t deadline_ns = options.deadline.count() > 0 ? DeadlineNs(options) : kNoDeadline;
    Scanner scanner(session_->map, session_->reader, deadline_ns);
    absl::Status status =
        scanner.Run([&visit](const ItemView& item) { return visit(item.key, item.value, InfoOf(item)); });
    if (!status.ok()) NoteFailure();
    return status;
  }

  absl::StatusOr<PutResult> Put(std::string_view key, std::string_view value, const OperationOptions& options) {
    KVD_RETURN_IF_ERROR(CheckKey(key));
    KVD_RETURN_IF_ERROR(CheckValue(value, options));
    KVD_ASSIGN_OR_RETURN(const ReplyView reply, Request(Opcode::kPut, key, value, 0, options));
    session_->locations.Remember(session_->Hash(key), reply.header.slot);
    return PutResult{reply.header.version};
  }

  const ClientCounters& counters() {
    counters_ = counted_;
    // A GET in the window is a hit; it reads the header, unless the location was known, and the item.
    const uint64_t window_gets = window_finds_ + window_location_hits_;
    counters_.gets += window_gets;
    counters_.hits += window_gets;
    counters_.location_hits += window_location_hits_;
    counters_.reads += window_gets + window_finds_;
    counters_.read_bytes += window_read_bytes_ + window_finds_ * kBucketHeaderBytes;
    if (session_ != nullptr) AddSession(*session_, counters_);
    return counters_;
  }

 private:
  static constexpr int64_t kNoDeadline = INT64_MAX;

  // Refuses a value over the server's limit before anything is copied.
  absl::Status CheckValue(std::string_view value, const OperationOptions& options) {
    KVD_RETURN_IF_ERROR(EnsureSession(options));
    const uint64_t limit = session_->channel->welcome().max_value_bytes;
    if (value.size() <= limit) return absl::OkStatus();
    return absl::OutOfRangeError(
        absl::StrCat("value of ", value.size(), " bytes > --max_value ", limit, " on the server"));
  }

  int64_t DeadlineNs(const OperationOptions& options) const {
    const int64_t timeout_ns = options.deadline.count() > 0 ? options.deadline.count() : default_deadline_ns_;
    const int64_t now_ns = RealClock::Get().NowMonotonicNs();
    return timeout_ns < kNoDeadline - now_ns ? now_ns + timeout_ns : kNoDeadline;
  }

  // The usual case, in as few instructions as it takes: false says nothing about the key.
  bool FindInWindow(std::string_view key, ItemView& item) {
    if (forked() || session_ == nullptr || key.size() - 1 >= kKeyBytesMax) [[unlikely]] {
      return false;
    }
    Session& session = *session_;
    const uint64_t hash = session.Hash(key);
    const Slot remembered = session.locations.Find(hash);
    Slot slot = remembered;
    if (remembered == kEmptySlot) [[likely]] {
      if (!session.window_get.Find(key, hash, item, slot)) return false;
      ++window_finds_;
      session.locations.Remember(hash, slot);
    } else {
      if (!session.window_get.FindAt(key, slot, item)) return false;
      ++window_location_hits_;
    }
    window_read_bytes_ += ItemBytesOf(slot);
    return session.window_get.ServerAlive();
  }

  template <typename Use>
  [[gnu::noinline]] absl::Status WithItemByMachine(std::string_view key, const OperationOptions& options,
                                                   const Use& use) {
    KVD_RETURN_IF_ERROR(CheckKey(key));
    KVD_RETURN_IF_ERROR(EnsureSession(options));
    ++counted_.gets;
    absl::Status status = FindItem(key, options, use);
    if (status.ok()) {
      ++counted_.hits;
    } else if (absl::IsNotFound(status)) {
      ++counted_.misses;
    } else {
      NoteFailure();
    }
    return status;
  }

  template <typename Use>
  absl::Status FindItem(std::string_view key, const OperationOptions& options, const Use& use) {
    Session& session = *session_;
    const uint64_t hash = session.Hash(key);
    const Slot remembered = session.locations.Find(hash);
    GetMachine& machine = session.machine;
    // Loads from a mapped region take a bounded number of rounds, so no clock is needed until the server is asked.
    const int64_t deadline_ns = session.channel->window().empty() ? DeadlineNs(options) : kNoDeadline;
    const GetMachine::Need first =
        remembered == kEmptySlot ? machine.Start(key, hash) : machine.StartAt(key, hash, remembered);
    KVD_ASSIGN_OR_RETURN(const GetMachine::Need need, session.reader.Run(machine, first, deadline_ns));
    if (need == GetMachine::Need::kFound) {
      if (machine.slot() == remembered) {
        ++counted_.location_hits;
      } else {
        session.locations.Remember(hash, machine.slot());
      }
      return use(machine.item());
    }
    if (need == GetMachine::Need::kAbsent) return absl::NotFoundError("no such key");
    return FindItemByRequest(key, hash, DeadlineNs(options), use);
  }

  template <typename Use>
  absl::Status FindItemByRequest(std::string_view key, uint64_t hash, int64_t deadline_ns, const Use& use) {
    Session& session = *session_;
    ++counted_.gets_by_request;
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kGet);
    for (;;) {
      KVD_ASSIGN_OR_RETURN(const ReplyView reply, session.requester.Call(header, key, {}, deadline_ns));
      KVD_RETURN_IF_ERROR(StatusOfReply(reply, 0));
      if ((reply.header.flags & kReplyInline) != 0) {
        ItemView item;
        item.version = reply.header.version;
        item.key = key;
        item.value = reply.payload;
        item.expiry_unix_us = reply.header.expiry_unix_us;
        item.user_flags = reply.header.user_flags;
        return use(item);
      }
      if ((reply.header.flags & kReplyHeld) == 0) {
        return absl::DataLossError("the server answered a GET with neither a value nor a location");
      }
      const uint64_t version = reply.header.version;
      const Slot slot = reply.header.slot;
      KVD_ASSIGN_OR_RETURN(
          const GetMachine::Need need,
          session.reader.Run(session.machine, session.machine.StartHeld(key, hash, slot, version), deadline_ns));
      RequestHeader release{};
      release.opcode = static_cast<uint8_t>(Opcode::kRelease);
      session.requester.Notify(release, {});
      if (need == GetMachine::Need::kFound) return use(session.machine.item());
      // The lease ended before the item was read; the loop ends with the deadline that Call keeps.
    }
  }

  // A session whose server is gone is replaced; the operation that found that out has failed already.
  absl::Status EnsureSession(const OperationOptions& options) {
    if (forked()) [[unlikely]] {
      return absl::FailedPreconditionError("this client was made before fork(); make one in the child");
    }
    if (session_ != nullptr) [[likely]] {
      return absl::OkStatus();
    }
    KVD_ASSIGN_OR_RETURN(session_, connector_.Reconnect(DeadlineNs(options)));
    return absl::OkStatus();
  }

  void NoteFailure() {
    if (session_->channel->status().ok()) return;
    AddSession(*session_, counted_);
    session_.reset();
  }

  static void AddSession(const Session& session, ClientCounters& sum) {
    const GetMachineCounters& machine = session.machine.counters();
    sum.reads += session.reader.reads();
    sum.read_bytes += session.reader.read_bytes();
    sum.torn_reads += machine.torn_reads;
    sum.moved_items += machine.moved_items;
    sum.redirects += machine.redirects;
    sum.confirmations += machine.confirmations;
    sum.stale_locations += machine.stale_locations;
    sum.requests += session.requester.requests();
  }

  Connector connector_;
  const int64_t default_deadline_ns_;
  std::unique_ptr<Session> session_;  // null after it broke, until the next operation
  const uint32_t fork_generation_;
  uint64_t window_finds_ = 0;
  uint64_t window_location_hits_ = 0;
  uint64_t window_read_bytes_ = 0;  // of items
  ClientCounters counted_;   // of operations, and of sessions that have ended
  ClientCounters counters_;  // what counters() last returned
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() {
  // In a child of fork() everything here is shared with the parent, whose session would end with it: left to the kernel.
  if (impl_ != nullptr && impl_->forked()) static_cast<void>(impl_.release());
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(std::string_view target, const ClientOptions& options) {
  if (options.deadline.count() <= 0) return absl::InvalidArgumentError("the deadline must be longer than zero");
  KVD_ASSIGN_OR_RETURN(Target parsed, ParseTarget(target));
  KVD_ASSIGN_OR_RETURN(Connector connector, Connector::Create(std::move(parsed), options));
  const int64_t deadline_ns = RealClock::Get().NowMonotonicNs() + options.deadline.count();
  KVD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, connector.Connect(deadline_ns));
  return std::unique_ptr<Client>(
      new Client(std::make_unique<Impl>(std::move(connector), options, std::move(session))));
}

absl::Status Client::Get(std::string_view key, std::string& value, ItemInfo* info, const OperationOptions& options) {
  return impl_->WithItem(key, options, [&value, info](const ItemView& item) {
    // A value of the same length as the last one takes no call into the string.
    if (value.size() == item.value.size()) {
      std::memcpy(value.data(), item.value.data(), item.value.size());
    } else {
      value.assign(item.value);
    }
    if (info != nullptr) *info = InfoOf(item);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> Client::Get(std::string_view key, const OperationOptions& options) {
  std::string value;
  KVD_RETURN_IF_ERROR(Get(key, value, nullptr, options));
  return value;
}

absl::StatusOr<size_t> Client::GetInto(std::string_view key, std::span<char> buffer, const OperationOptions& options) {
  size_t length = 0;
  KVD_RETURN_IF_ERROR(impl_->WithItem(key, options, [buffer, &length](const ItemView& item) {
    length = item.value.size();
    if (length > buffer.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("the value has ", length, " bytes, the buffer ", buffer.size()));
    }
    std::memcpy(buffer.data(), item.value.data(), length);
    return absl::OkStatus();
  }));
  return length;
}

absl::StatusOr<PutResult> Client::Put(std::string_view key, std::string_view value, const OperationOptions& options) {
  return impl_->Put(key, value, options);
}

absl::Status Client::Delete(std::string_view key, const OperationOptions& options) {
  KVD_RETURN_IF_ERROR(CheckKey(key));
  return impl_->Request(Opcode::kDelete, key, {}, 0, options).status();
}

absl::StatusOr<bool> Client::Exists(std::string_view key, const OperationOptions& options) {
  const absl::Status status = impl_->WithItem(key, options, [](const ItemView&) { return absl::OkStatus(); });
  if (status.ok()) return true;
  if (absl::IsNotFound(status)) return false;
  return status;
}

absl::StatusOr<std::chrono::nanoseconds> Client::Ping(const OperationOptions& options) {
  const int64_t before_ns = RealClock::Get().NowMonotonicNs();
  KVD_RETURN_IF_ERROR(impl_->Request(Opcode::kPing, {}, {}, 0, options).status());
  return std::chrono::nanoseconds(RealClock::Get().NowMonotonicNs() - before_ns);
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Client::Stats(const OperationOptions& options) {
  std::string text;
  for (uint64_t whole = 1; text.size() < whole;) {
    KVD_ASSIGN_OR_RETURN(const ReplyView reply, impl_->Request(Opcode::kStat, {}, {}, text.size(), options));
    whole = reply.header.value_len;
    if (reply.payload.empty() && text.size() < whole) return absl::DataLossError("the statistics ended early");
    text.append(reply.payload);
  }
  std::vector<std::pair<std::string, std::string>> stats;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return absl::DataLossError("a line of the statistics has no value");
    stats.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return stats;
}

absl::Status Client::Scan(const Visitor& visit, const OperationOptions& options) { return impl_->Scan(visit, options); }

const ClientCounters& Client::counters() const { return impl_->counters(); }

const std::string& Client::target() const { return impl_->target(); }

}  // namespace kvd
