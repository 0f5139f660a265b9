// Writes: one, many at once, and those that are started and not waited for.
#include <algorithm>
#include <utility>

#include "client/internal/client_core.h"
#include "client/internal/reply_status.h"
#include "client/internal/write_options.h"
#include "common/base/status_macros.h"

namespace kvd {

absl::Status ClientCore::ReadyToWrite(const WriteOptions& options, int64_t deadline_ns) {
  KVD_RETURN_IF_ERROR(Ready(deadline_ns));
  if (options.ttl.count() <= 0) return absl::OkStatus();
  RefreshClock();
  while (connection_.clock_asked()) {
    KVD_RETURN_IF_ERROR(connection_.Wait(deadline_ns));
    connection_.Advance();
  }
  return Ready(deadline_ns);
}

absl::Status ClientCore::Prepare(Opcode opcode, std::string_view key, std::string_view payload,
                                 const WriteOptions& options, RequestHeader& header) {
  KVD_RETURN_IF_ERROR(CheckKey(key));
  if (const Session* session = connection_.session(); session != nullptr) {
    // Refused before anything is copied. Between sessions the server will say so.
    const uint64_t limit = session->channel->welcome().max_value_bytes;
    if (payload.size() > limit) {
      return absl::OutOfRangeError(absl::StrCat("value of ", payload.size(),
                                                " bytes > --max_value ", limit, " on the server"));
    }
  }
  const ServerClock& clock = connection_.clock();
  int64_t error_us = 0;
  if (options.ttl.count() != 0)
    error_us = clock.ErrorNs(RealClock::Get().NowMonotonicNs()) / 1000 + 1;
  return FillHeader(opcode, options, clock, error_us, header);
}

// The server has said what became of it.
static bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsAborted(status);
}

absl::Status ClientCore::WriteObserved(Opcode opcode, std::string_view key,
                                       std::string_view payload, uint64_t argument,
                                       const WriteOptions& options, Request& request) {
  const int64_t start_ns = RealClock::Get().NowMonotonicNs();
  const absl::Status status = WriteOnce(opcode, key, payload, argument, options, request);
  const int64_t end_ns = RealClock::Get().NowMonotonicNs();
  if (IsAnswer(status)) observer_.Add(Observer::Kind::kWrite, end_ns - start_ns);
  if (observer_.TellIsDue(/*is_write=*/true)) observer_.Tell(counters());
  ReportIfDue(end_ns);
  return status;
}

absl::Status ClientCore::WriteOnce(Opcode opcode, std::string_view key, std::string_view payload,
                                   uint64_t argument, const WriteOptions& options,
                                   Request& request) {
  if (IsOver(options.deadline)) return Over();
  // It takes a look at the clock, which a short write with time enough is not to wait for.
  constexpr size_t kShortBytes = 64 * 1024;
  int64_t deadline_ns = kDeadlineUnknown;
  if (options.deadline.count() != 0 || payload.size() > kShortBytes) {
    deadline_ns = DeadlineNs(options.deadline, payload.size());
    request.deadline_ns = deadline_ns;
  }
  if (options.ttl.count() > 0 || !ReadyAtOnce()) {
    if (deadline_ns == kDeadlineUnknown) deadline_ns = DeadlineNs(options.deadline);
    KVD_RETURN_IF_ERROR(ReadyToWrite(options, deadline_ns));
  }
  KVD_RETURN_IF_ERROR(Prepare(opcode, key, payload, options, request.header));
  request.header.argument = argument;
  request.key = key;
  request.payload = payload;
  connection_.requests().Submit(request);
  connection_.Advance();
  // The clock is looked at while the request is on its way.
  if (!request.done && deadline_ns == kDeadlineUnknown) {
    deadline_ns = DeadlineNs(options.deadline, payload.size());
  }
  Await(std::span(&request, 1), deadline_ns);
  KVD_RETURN_IF_ERROR(request.status);
  if (absl::Status status = StatusOfReply({request.reply, request.reply_payload},
                                          {payload.size(), connection_.server_evicts()});
      !status.ok()) {
    return status;
  }
  if (Session* session = connection_.session())
    session->locations->Remember(session->Hash(key), request.reply.slot);
  return absl::OkStatus();
}

std::vector<absl::Status> ClientCore::WriteAll(Opcode opcode, std::span<Request> requests,
                                               const WriteOptions& options) {
  if (!observer_.times()) return WriteAllOnce(opcode, requests, options);
  const int64_t start_ns = RealClock::Get().NowMonotonicNs();
  std::vector<absl::Status> statuses = WriteAllOnce(opcode, requests, options);
  const int64_t end_ns = RealClock::Get().NowMonotonicNs();
  if (std::all_of(statuses.begin(), statuses.end(), IsAnswer)) {
    observer_.Add(Observer::Kind::kMultiWrite, end_ns - start_ns);
  }
  observer_.Tell(counters());
  ReportIfDue(end_ns);
  return statuses;
}

std::vector<absl::Status> ClientCore::WriteAllOnce(Opcode opcode, std::span<Request> requests,
                                                   const WriteOptions& options) {
  std::vector<absl::Status> statuses(requests.size());
  uint64_t bytes = 0;
  if (IsOver(options.deadline)) {
    std::fill(statuses.begin(), statuses.end(), Over());
    return statuses;
  }
  for (const Request& request : requests) bytes += request.payload.size();
  const int64_t deadline_ns = DeadlineNs(options.deadline, bytes);
  const absl::Status ready = ReadyToWrite(options, deadline_ns);
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = requests[i];
    request.deadline_ns = deadline_ns;
    statuses[i] =
        ready.ok() ? Prepare(opcode, request.key, request.payload, options, request.header) : ready;
    if (statuses[i].ok()) connection_.requests().Submit(request);
  }
  connection_.Advance();
  Await(requests, deadline_ns);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!statuses[i].ok()) continue;
    const Request& request = requests[i];
    statuses[i] = request.status.ok()
                      ? StatusOfReply({request.reply, request.reply_payload},
                                      {request.payload.size(), connection_.server_evicts()})
                      : request.status;
    Session* session = connection_.session();
    if (statuses[i].ok() && session != nullptr) {
      session->locations->Remember(session->Hash(request.key), request.reply.slot);
    }
  }
  return statuses;
}

absl::Status ClientCore::GetAndTouch(std::string_view key, std::string& value, ItemInfo* info,
                                     const WriteOptions& options) {
  if (IsOver(options.deadline)) return Over();
  const int64_t deadline_ns = DeadlineNs(options.deadline);
  KVD_RETURN_IF_ERROR(ReadyToWrite(options, deadline_ns));
  Request request;
  KVD_RETURN_IF_ERROR(Prepare(Opcode::kTouch, key, {}, options, request.header));
  request.header.flags |= kRequestWithValue;
  request.key = key;
  KVD_RETURN_IF_ERROR(CallForOk(request, deadline_ns));
  const auto use = [&value, info](const ItemView& item) {
    AssignValue(item.value, value);
    if (info != nullptr) *info = InfoOf(item);
    return absl::OkStatus();
  };
  if ((request.reply.flags & (kReplyInline | kReplyHeld)) != 0) {
    if (Session* const session = connection_.session())
      session->reader.AllowForSize(options.deadline.count() == 0);
    const absl::Status used = UseGetReply(key, request, deadline_ns, use);
    const bool ended = connection_.session() == nullptr || connection_.EndIfBroken();
    if (used.ok() || !ended || absl::IsDataLoss(used)) return used;
  }
  // What was touched is still to be read: the session ended meanwhile, or the answer came without
  // the value. That is a repeat, whose item may have changed since, or a touch that made the item
  // expire.
  OperationOptions rest;
  rest.deadline = std::chrono::nanoseconds(
      std::max<int64_t>(1, deadline_ns - RealClock::Get().NowMonotonicNs()));
  return WithItem(key, rest, use);
}

void ClientCore::StartWrite(Opcode opcode, std::string_view key, std::string_view payload,
                            uint64_t argument, Async async, const WriteOptions& options) {
  auto operation = std::make_unique<AsyncOperation>();
  operation->async = std::move(async);
  absl::Status status =
      forked() ? Forked() : Prepare(opcode, key, payload, options, operation->header);
  if (status.ok() && IsOver(options.deadline)) status = Over();
  if (!status.ok()) return this->async().Refuse(std::move(operation), std::move(status));
  const int64_t now_ns = RealClock::Get().NowMonotonicNs();
  operation->deadline_ns = DeadlineFrom(now_ns, options.deadline, payload.size());
  if (observer_.WriteIsDue()) operation->observed_from_ns = now_ns;
  operation->header.argument = argument;
  operation->key = key;
  operation->payload = payload;
  async_.Start(std::move(operation));
}

void ClientCore::StartGet(std::string_view key, const std::span<char>* into,
                          std::shared_ptr<BufferMemory> buffer, Async async,
                          const OperationOptions& options) {
  auto operation = std::make_unique<AsyncOperation>();
  operation->async = std::move(async);
  operation->is_get = true;
  absl::Status status = forked() ? Forked() : CheckKey(key);
  if (status.ok() && IsOver(options.deadline)) status = Over();
  if (!status.ok()) return this->async().Refuse(std::move(operation), std::move(status));
  operation->key = key;
  operation->buffer = std::move(buffer);
  if (into != nullptr) {
    operation->into = *into;
    operation->has_into = true;
  }
  const int64_t now_ns = RealClock::Get().NowMonotonicNs();
  operation->deadline_ns = DeadlineFrom(now_ns, options.deadline, 0);
  if (observer_.GetIsDue()) {
    observer_.TakeDue();
    operation->observed_from_ns = now_ns;
  }
  operation->allows_for_size = options.deadline.count() == 0;
  async_.Start(std::move(operation));
}

void ClientCore::StartPutFrom(std::string_view key, std::shared_ptr<BufferMemory> buffer,
                              size_t bytes, Async async, const WriteOptions& options) {
  auto operation = std::make_unique<AsyncOperation>();
  operation->async = std::move(async);
  const std::string_view payload(reinterpret_cast<const char*>(buffer->data()),
                                 std::min(bytes, buffer->size()));
  absl::Status status =
      forked() ? Forked() : Prepare(Opcode::kPut, key, payload, options, operation->header);
  if (status.ok() && bytes > buffer->size())
    status = absl::InvalidArgumentError("more bytes than the buffer has");
  if (status.ok() && IsOver(options.deadline)) status = Over();
  if (!status.ok()) return this->async().Refuse(std::move(operation), std::move(status));
  operation->key = key;
  operation->buffer = std::move(buffer);
  operation->buffer_payload_bytes = bytes;
  const int64_t now_ns = RealClock::Get().NowMonotonicNs();
  operation->deadline_ns = DeadlineFrom(now_ns, options.deadline, bytes);
  if (observer_.WriteIsDue()) operation->observed_from_ns = now_ns;
  async_.Start(std::move(operation));
}

}  // namespace kvd
