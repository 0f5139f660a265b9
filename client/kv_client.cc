#include "client/kv_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/internal/client_core.h"
#include "client/internal/client_factory.h"
#include "client/internal/connector.h"
#include "client/internal/location_cache.h"
#include "client/internal/target.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

absl::Status NoBuffer() {
  return absl::InvalidArgumentError("a buffer of no bytes: take one from AllocateBuffer");
}

}  // namespace

Buffer::Buffer(std::shared_ptr<BufferMemory> memory) : memory_(std::move(memory)) {}
char* Buffer::data() const {
  return memory_ == nullptr ? nullptr : reinterpret_cast<char*>(memory_->data());
}
size_t Buffer::size() const { return memory_ == nullptr ? 0 : memory_->size(); }
bool Buffer::busy() const { return memory_.use_count() > 1; }

class Client::Impl : public ClientCore {
 public:
  using ClientCore::ClientCore;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() {
  // In a child of fork() everything here is shared with the parent, whose session would end with
  // it: left to the kernel.
  if (impl_ == nullptr) return;
  if (impl_->forked()) {
    static_cast<void>(impl_.release());
  } else {
    impl_->TellLast();
  }
}

absl::StatusOr<std::shared_ptr<LocationCache>> MakeLocationCache(uint64_t entries) {
  if (entries == 0) return absl::InvalidArgumentError("a location cache has one entry at least");
  return LocationCache::Create(entries);
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(std::string_view target,
                                                        const ClientOptions& options) {
  return ClientFactory::Connect(target, options, OpenChannel);
}

absl::StatusOr<std::unique_ptr<Client>> ClientFactory::Connect(std::string_view target,
                                                               const ClientOptions& options,
                                                               ChannelOpener opener) {
  if (options.deadline.count() <= 0)
    return absl::InvalidArgumentError("the deadline must be longer than zero");
  ClientOptions own = options;
  if (own.location_cache == nullptr) {
    KVD_ASSIGN_OR_RETURN(own.location_cache, LocationCache::Create(own.location_cache_entries));
  } else if (own.location_cache_entries != 0) {
    return absl::InvalidArgumentError(
        "location_cache and location_cache_entries exclude each other: the cache has its size");
  }
  KVD_ASSIGN_OR_RETURN(std::vector<Target> targets, ParseTargets(target));
  KVD_ASSIGN_OR_RETURN(Connector connector,
                       Connector::Create(std::move(targets), own, std::move(opener)));
  auto impl = std::make_unique<Client::Impl>(std::move(connector), own);
  KVD_RETURN_IF_ERROR(impl->Open(impl->DeadlineNs({})));
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

// --- Reading ---

absl::Status Client::Get(std::string_view key, std::string& value, ItemInfo* info,
                         const OperationOptions& options) {
  return impl_->WithItem(key, options, [&value, info](const ItemView& item) {
    AssignValue(item.value, value);
    if (info != nullptr) *info = InfoOf(item);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> Client::Get(std::string_view key, const OperationOptions& options) {
  std::string value;
  KVD_RETURN_IF_ERROR(Get(key, value, nullptr, options));
  return value;
}

absl::StatusOr<size_t> Client::GetInto(std::string_view key, std::span<char> buffer,
                                       const OperationOptions& options) {
  size_t length = 0;
  KVD_RETURN_IF_ERROR(impl_->WithItem(key, options, [buffer, &length](const ItemView& item) {
    length = item.value.size();
    if (length > buffer.size()) {
      return absl::OutOfRangeError(
          absl::StrCat("the value has ", length, " bytes, the buffer ", buffer.size()));
    }
    if (length != 0) std::memcpy(buffer.data(), item.value.data(), length);
    return absl::OkStatus();
  }));
  return length;
}

absl::StatusOr<size_t> Client::GetInto(std::string_view key, const Buffer& buffer,
                                       const OperationOptions& options) {
  if (buffer.memory_ == nullptr) return NoBuffer();
  return impl_->GetInto(key, buffer.memory_, options);
}

absl::StatusOr<Buffer> Client::AllocateBuffer(size_t bytes) {
  KVD_ASSIGN_OR_RETURN(std::shared_ptr<BufferMemory> memory, BufferMemory::Create(bytes));
  return Buffer(std::move(memory));
}

absl::StatusOr<bool> Client::Exists(std::string_view key, const OperationOptions& options) {
  const absl::Status status =
      impl_->WithItem(key, options, [](const ItemView&) { return absl::OkStatus(); });
  if (status.ok()) return true;
  if (absl::IsNotFound(status)) return false;
  return status;
}

absl::Status Client::MultiGet(std::span<const std::string_view> keys, std::span<GetResult> results,
                              const OperationOptions& options) {
  return impl_->MultiGet(keys, results, options);
}

// --- Writing ---

absl::StatusOr<WriteResult> Client::Put(std::string_view key, std::string_view value,
                                        const WriteOptions& options) {
  Request request;
  KVD_RETURN_IF_ERROR(impl_->Write(Opcode::kPut, key, value, 0, options, request));
  return WriteResult{request.reply.version};
}

absl::StatusOr<WriteResult> Client::PutFrom(std::string_view key, const Buffer& buffer,
                                            size_t bytes, const WriteOptions& options) {
  if (buffer.memory_ == nullptr) return NoBuffer();
  if (bytes > buffer.size()) return absl::InvalidArgumentError("more bytes than the buffer has");
  Request request;
  request.buffer = buffer.memory_;
  KVD_RETURN_IF_ERROR(impl_->Write(Opcode::kPut, key, {buffer.data(), bytes}, 0, options, request));
  return WriteResult{request.reply.version};
}

absl::Status Client::Delete(std::string_view key, const WriteOptions& options) {
  Request request;
  return impl_->Write(Opcode::kDelete, key, {}, 0, options, request);
}

absl::StatusOr<IncrementResult> Client::Increment(std::string_view key, int64_t delta,
                                                  const WriteOptions& options) {
  Request request;
  KVD_RETURN_IF_ERROR(
      impl_->Write(Opcode::kIncrement, key, {}, static_cast<uint64_t>(delta), options, request));
  return IncrementResult{static_cast<int64_t>(request.reply.result), request.reply.version};
}

absl::StatusOr<WriteResult> Client::Append(std::string_view key, std::string_view piece,
                                           const WriteOptions& options) {
  Request request;
  KVD_RETURN_IF_ERROR(impl_->Write(Opcode::kAppend, key, piece, 0, options, request));
  return WriteResult{request.reply.version};
}

absl::StatusOr<WriteResult> Client::Prepend(std::string_view key, std::string_view piece,
                                            const WriteOptions& options) {
  Request request;
  KVD_RETURN_IF_ERROR(impl_->Write(Opcode::kPrepend, key, piece, 0, options, request));
  return WriteResult{request.reply.version};
}

absl::StatusOr<WriteResult> Client::Touch(std::string_view key, const WriteOptions& options) {
  Request request;
  KVD_RETURN_IF_ERROR(impl_->Write(Opcode::kTouch, key, {}, 0, options, request));
  return WriteResult{request.reply.version};
}

absl::Status Client::GetAndTouch(std::string_view key, std::string& value, ItemInfo* info,
                                 const WriteOptions& options) {
  return impl_->GetAndTouch(key, value, info, options);
}

std::vector<absl::StatusOr<WriteResult>> Client::MultiPut(std::span<const PutRequest> puts,
                                                          const WriteOptions& options) {
  std::vector<Request> requests(puts.size());
  for (size_t i = 0; i < puts.size(); ++i) {
    requests[i].key = puts[i].key;
    requests[i].payload = puts[i].value;
  }
  const std::vector<absl::Status> statuses = impl_->WriteAll(Opcode::kPut, requests, options);
  std::vector<absl::StatusOr<WriteResult>> results;
  results.reserve(puts.size());
  for (size_t i = 0; i < puts.size(); ++i) {
    if (statuses[i].ok()) {
      results.emplace_back(WriteResult{requests[i].reply.version});
    } else {
      results.emplace_back(statuses[i]);
    }
  }
  return results;
}

std::vector<absl::Status> Client::MultiDelete(std::span<const std::string_view> keys,
                                              const WriteOptions& options) {
  std::vector<Request> requests(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) requests[i].key = keys[i];
  return impl_->WriteAll(Opcode::kDelete, requests, options);
}

absl::StatusOr<uint64_t> Client::Flush(std::string_view prefix, const OperationOptions& options) {
  if (prefix.size() > kKeyBytesMax)
    return absl::InvalidArgumentError("the prefix is longer than any key");
  if (Impl::IsOver(options.deadline)) return Impl::Over();
  uint64_t deleted = 0;
  for (uint64_t cursor = 0;;) {
    Request request;
    request.header.opcode = static_cast<uint8_t>(Opcode::kFlush);
    request.header.argument = cursor;
    request.key = prefix;
    KVD_RETURN_IF_ERROR(impl_->CallForOk(request, impl_->DeadlineNs(options.deadline)));
    deleted += request.reply.value_len;
    cursor = request.reply.result;
    if (cursor == 0) return deleted;
  }
}

// --- Many operations under way ---

void Client::StartGet(std::string_view key, Async async, const OperationOptions& options) {
  impl_->StartGet(key, nullptr, nullptr, std::move(async), options);
}

void Client::StartGetInto(std::string_view key, std::span<char> buffer, Async async,
                          const OperationOptions& options) {
  impl_->StartGet(key, &buffer, nullptr, std::move(async), options);
}

void Client::StartGetInto(std::string_view key, const Buffer& buffer, Async async,
                          const OperationOptions& options) {
  const std::span<char> nothing;
  impl_->StartGet(key, buffer.memory_ == nullptr ? &nothing : nullptr, buffer.memory_,
                  std::move(async), options);
}

void Client::StartPutFrom(std::string_view key, const Buffer& buffer, size_t bytes, Async async,
                          const WriteOptions& options) {
  if (buffer.memory_ == nullptr) return impl_->RefuseStart(std::move(async), NoBuffer());
  impl_->StartPutFrom(key, buffer.memory_, bytes, std::move(async), options);
}

void Client::StartPut(std::string_view key, std::string_view value, Async async,
                      const WriteOptions& options) {
  impl_->StartWrite(Opcode::kPut, key, value, 0, std::move(async), options);
}

void Client::StartDelete(std::string_view key, Async async, const WriteOptions& options) {
  impl_->StartWrite(Opcode::kDelete, key, {}, 0, std::move(async), options);
}

void Client::StartIncrement(std::string_view key, int64_t delta, Async async,
                            const WriteOptions& options) {
  impl_->StartWrite(Opcode::kIncrement, key, {}, static_cast<uint64_t>(delta), std::move(async),
                    options);
}

void Client::StartAppend(std::string_view key, std::string_view piece, Async async,
                         const WriteOptions& options) {
  impl_->StartWrite(Opcode::kAppend, key, piece, 0, std::move(async), options);
}

void Client::StartPrepend(std::string_view key, std::string_view piece, Async async,
                          const WriteOptions& options) {
  impl_->StartWrite(Opcode::kPrepend, key, piece, 0, std::move(async), options);
}

void Client::StartTouch(std::string_view key, Async async, const WriteOptions& options) {
  impl_->StartWrite(Opcode::kTouch, key, {}, 0, std::move(async), options);
}

size_t Client::Poll(std::span<Completion> completions) { return impl_->Poll(completions); }

size_t Client::Wait(std::span<Completion> completions, std::chrono::nanoseconds timeout) {
  return impl_->Wait(completions, timeout.count());
}

absl::StatusOr<int> Client::EventFd() { return impl_->EventFd(); }

bool Client::PrepareToSleep() { return impl_->PrepareToSleep(); }

size_t Client::outstanding() const { return impl_->async().outstanding(); }

// --- All keys, the server, and this client ---

absl::StatusOr<std::string> Client::Scan(const Visitor& visit, const ScanOptions& options) {
  return impl_->Scan(visit, options);
}

absl::StatusOr<std::chrono::nanoseconds> Client::Ping(const OperationOptions& options) {
  if (Impl::IsOver(options.deadline)) return Impl::Over();
  const int64_t before_ns = RealClock::Get().NowMonotonicNs();
  Request request;
  request.header.opcode = static_cast<uint8_t>(Opcode::kPing);
  KVD_RETURN_IF_ERROR(impl_->CallForOk(request, impl_->DeadlineNs(options.deadline)));
  return std::chrono::nanoseconds(RealClock::Get().NowMonotonicNs() - before_ns);
}

namespace {

// A text of the server's that takes several requests.
// `which`: of those that the opcode has; empty: its own.
absl::StatusOr<std::string> ReadText(ClientCore& core, Opcode opcode, std::string_view which,
                                     int64_t deadline_ns) {
  std::string text;
  for (uint64_t whole = 1; text.size() < whole;) {
    Request request;
    request.header.opcode = static_cast<uint8_t>(opcode);
    request.header.argument = text.size();
    request.key = which;
    KVD_RETURN_IF_ERROR(core.CallForOk(request, deadline_ns));
    whole = request.reply.value_len;
    if (request.reply_payload.empty() && text.size() < whole) {
      return absl::DataLossError("the server's text ended early");
    }
    text.append(request.reply_payload);
  }
  return text;
}

// Takes what is before the next `end`, or the rest.
std::string_view TakeUntil(char end, std::string_view& rest) {
  const std::string_view part = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

// Lines of words "name=value".
absl::StatusOr<std::vector<Client::Facts>> FactsOf(std::string_view text) {
  std::vector<Client::Facts> lines;
  while (!text.empty()) {
    std::string_view line = TakeUntil('\n', text);
    Client::Facts facts;
    while (!line.empty()) {
      const std::string_view word = TakeUntil(' ', line);
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos)
        return absl::DataLossError("the server's text has a word without a value");
      facts.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    lines.push_back(std::move(facts));
  }
  return lines;
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Client::Stats(
    const OperationOptions& options) {
  if (Impl::IsOver(options.deadline)) return Impl::Over();
  KVD_ASSIGN_OR_RETURN(const std::string text,
                       ReadText(*impl_, Opcode::kStat, "", impl_->DeadlineNs(options.deadline)));
  std::vector<std::pair<std::string, std::string>> stats;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = TakeUntil('\n', rest);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos)
      return absl::DataLossError("a line of the statistics has no value");
    stats.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return stats;
}

absl::StatusOr<std::vector<Client::Facts>> Client::Sessions(const OperationOptions& options) {
  if (Impl::IsOver(options.deadline)) return Impl::Over();
  KVD_ASSIGN_OR_RETURN(const std::string text, ReadText(*impl_, Opcode::kSessions, "",
                                                        impl_->DeadlineNs(options.deadline)));
  return FactsOf(text);
}

absl::StatusOr<std::vector<Client::Facts>> Client::SlowRequests(const OperationOptions& options) {
  if (Impl::IsOver(options.deadline)) return Impl::Over();
  KVD_ASSIGN_OR_RETURN(const std::string text, ReadText(*impl_, Opcode::kSessions, kSlowLogText,
                                                        impl_->DeadlineNs(options.deadline)));
  return FactsOf(text);
}

absl::StatusOr<uint64_t> Client::Kick(std::string_view who, const OperationOptions& options) {
  if (Impl::IsOver(options.deadline)) return Impl::Over();
  if (who.empty() || who.size() > kKeyBytesMax)
    return absl::InvalidArgumentError("say whose sessions are to end");
  Request request;
  request.header.opcode = static_cast<uint8_t>(Opcode::kKick);
  request.key = who;
  const absl::Status called = impl_->CallForOk(request, impl_->DeadlineNs(options.deadline));
  // It is not plain who is meant; the server says who could be.
  if (absl::IsUnimplemented(called)) return absl::InvalidArgumentError(request.reply_payload);
  KVD_RETURN_IF_ERROR(called);
  return request.reply.result;
}

ClientObservation Client::Observe() const { return impl_->observer().Read(); }

int64_t Client::ServerUnixUs() const { return impl_->connection().clock().NowUnixUs(); }

const ClientCounters& Client::counters() const { return impl_->counters(); }

const std::string& Client::target() const { return impl_->connection().connector().name(); }

}  // namespace kvd
