// The kvd client library: this header is all of it that applications include. docs/client.md has complete programs.
//
//   absl::StatusOr<std::unique_ptr<kvd::Client>> client = kvd::Client::Connect("shm:/run/kvd/kvd.sock");
//   if (!client.ok()) ...
//   absl::StatusOr<kvd::WriteResult> put = client.value()->Put("greeting", "hello");
//   std::string value;
//   if (put.ok() && client.value()->Get("greeting", value).ok()) std::cout << value;
//
// A GET reads the server's memory by itself (loads from shared memory, or RDMA READs) and verifies what it read; the
// server takes no part in it. Everything that writes is a request to the server.
//
// Errors, for every operation:
//   code               meaning                                           retry?                      who acts
//   NOT_FOUND          the key had no value at some moment of the call   as you like                 application
//   ABORTED            the condition of a write did not hold             after reading again         application
//   INVALID_ARGUMENT   key empty or over 4096 bytes; bad target, option  no                          application
//                      or cursor; INCREMENT of what is no number
//   OUT_OF_RANGE       value over the server's --max_value, or over the  no                          application
//                      buffer; INCREMENT beyond 64 bits
//   RESOURCE_EXHAUSTED the region is full; nothing was changed           after deletes               operator
//                      or: no memory to register in this process, or     after giving up buffers     application
//                      64 buffers, 16 GiB in this session; not sent
//   DEADLINE_EXCEEDED  not done in time; a write may still take effect,  reads yes, writes: see below application
//                      unless the message says that it was not sent
//   UNAVAILABLE        no server there, it went away, or it is full      yes, with back-off          operator
//   PERMISSION_DENIED  not admitted, or the socket may not be opened     no                          operator
//   FAILED_PRECONDITION no common protocol version; used after fork()    no                          operator
//   UNIMPLEMENTED      the server is older than this operation           no                          operator
//   DATA_LOSS          the server broke the format (tell us), or the     no                          operator
//                      item is damaged in its memory: put or delete it
//   UNKNOWN            a write was sent and its answer lost: it took     read first                  application
//                      effect once or not at all
//
// When the session with the server breaks, the client makes a new one by itself, and operations that are under way go on in
// it: reads begin anew; writes that were sent are sent again, and take effect once, as long as it is the same kvd. If kvd
// was started anew meanwhile, they end as UNKNOWN. Until there is a server again, operations wait up to their deadline
// (ClientOptions::wait_for_server) while the client tries with a back-off of 1 ms to 1 s, with jitter. An attempt to connect
// happens in the calls of this library, so an operation may return up to 50 ms after its deadline meanwhile.
//
// Deadlines: a negative one has passed already, so what is left until a moment can be passed as it is: DEADLINE_EXCEEDED at
// once, and nothing is sent. Nor is a request sent whose deadline passes before it can be. What is not cut short is work of the
// client's own, after which the time is looked at again: copying a long value, registering a buffer.
//
// Order: writes of one client to one key take effect in the order in which they were started, blocking or not, also where one
// ended with DEADLINE_EXCEEDED, or was sent again. Once a write is acknowledged, no earlier one of this client to that key takes
// effect any more. So a write waits while the server still fetches an earlier, large value of this client for its key. Flush is
// not part of this order; nor are reads among what is under way at the same time.
//
// Threads: a Client may be used by one thread at a time. Make one per thread; they are cheap. The library has no threads of
// its own. Calls block up to their deadline, except where Start... and Poll say otherwise.
// After fork() the child must not use the parent's clients: FAILED_PRECONDITION, also as the completion of what it starts. What
// was under way is the parent's and comes back there only. The child may destroy them, which gives nothing back and disturbs
// nobody.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd {

class LocationCache;

// Memory in which clients of several threads remember together where items lie, for
// ClientOptions::location_cache: what one of them has read or written, the next one finds with one
// exact read. `entries`: 1 to 2^30, 16 bytes each, rounded up to a power of two; of two keys that
// fall on the same entry the later one stays, so four entries a key are plenty.
//
// Any thread may make one and give it to as many clients as it likes, of one kvd or of several;
// they use it without locks and without waiting for each other. It goes with the last client, or
// handle, that has it. It stays when a client connects anew: to the same kvd, and everything in it
// is good; to one that was started anew, and nothing in it is found any more and its entries are
// taken over one by one. Processes do not share it: after fork() the child has a copy of its own.
//
// INVALID_ARGUMENT: `entries` out of range. RESOURCE_EXHAUSTED: no memory.
absl::StatusOr<std::shared_ptr<LocationCache>> MakeLocationCache(uint64_t entries);

// What was wrong with a client's connection: the session with the server ended, or one could not be
// made.
struct ConnectionError {
  std::string target = {};
  absl::Status cause = {};
  std::string remedy = {};  // what to do, for people
};

struct ClientOptions {
  // For Connect, and for each operation that does not bring its own. Values longer than 16 MiB have a second more for each
  // further 32 MiB, since this is for whatever size comes; the deadline that an operation brings is kept as it is.
  std::chrono::nanoseconds deadline = std::chrono::seconds(5);
  // Shown in the server's log and statistics. At most 23 printable characters are kept.
  std::string name = {};
  // Requests that may be outstanding at the server, which may grant fewer; more wait in the client.
  uint32_t credits = 16;
  // Operations that find no server wait for one up to their deadline. False: they fail with UNAVAILABLE, or UNKNOWN, as soon
  // as an attempt to connect has failed.
  bool wait_for_server = true;
  // For a tool that looks after the server, and leaves soon: where --max_clients sessions are there already, takes one of two
  // more that kvd keeps for its own user and root on its host, over shared memory. Elsewhere it means nothing.
  bool for_administration = false;
  // Reads each bucket whole, as over RDMA, also where the region is shared memory. To count READs, not for speed.
  bool read_whole_buckets = false;
  // Locations of items that this client remembers for itself, 16 bytes each, at most 2^30; rounded
  // up to a power of two. A remembered item takes one exact read; one that has moved costs one read
  // more, and never a wrong answer. 0: none.
  uint32_t location_cache_entries = 0;
  // The same, together with other clients of this process: made by MakeLocationCache, and kept by
  // the client for as long as it lives. INVALID_ARGUMENT: both this and location_cache_entries.
  std::shared_ptr<LocationCache> location_cache = {};
  // A kvd with a key file (its --keys) admits over RDMA whoever proves to have a key of it, and over
  // shared memory also whom it names. `key_file`: a file of the same form, for its owner alone (mode
  // 0600); `key_name`: which of its keys, the first one if empty. It is read anew each time that the
  // client connects, so a new key can be given while the client runs. The secret does not leave this
  // process; and a client with a key refuses a server that does not prove to have the same key.
  // Errors of Connect, and of operations while there is no session: PERMISSION_DENIED and
  // INVALID_ARGUMENT say what is wrong with the file.
  std::string key_file = {};
  std::string key_name = {};
  // RDMA only. The device to use, as `kvcli devices` lists it; empty: the one that the route to the server leads over.
  std::string rdma_device = {};
  // RDMA only. Connects without rdma_cm: the server must run with --connect=tcp. The GID index then is `rdma_gid_index`,
  // or chosen where it is negative.
  bool rdma_connect_by_tcp = false;
  int rdma_gid_index = -1;
  // How long operations take (Client::Observe): one GET in so many is timed, picked by chance, and
  // one write in half as many, which does not make them measurably dearer; 1: each; 0: none.
  // At most 2^20.
  uint32_t latency_sampling = 64;
  // Called for the first error of each connection: what follows it, until there is a session again,
  // is only counted (ClientObservation::connection_errors). From within a call of this client, which
  // it must not use.
  std::function<void(const ConnectionError& error)> on_connection_error = {};
};

struct OperationOptions {
  std::chrono::nanoseconds deadline{0};  // 0: the client's; negative: passed already
};

// When a write takes effect at all. If it does not hold, the write ends as ABORTED (NOT_FOUND where an item was asked for and
// the key has none) and changes nothing.
struct Condition {
  enum class Kind : uint8_t { kNone, kIfAbsent, kIfPresent, kIfVersion };

  static Condition IfAbsent() { return {Kind::kIfAbsent, 0}; }
  static Condition IfPresent() { return {Kind::kIfPresent, 0}; }
  // `version`: as a GET or an earlier write returned it.
  static Condition IfVersion(uint64_t version) { return {Kind::kIfVersion, version}; }

  Kind kind = Kind::kNone;
  uint64_t version = 0;
};

struct WriteOptions {
  std::chrono::nanoseconds deadline{0};  // 0: the client's; negative: passed already
  Condition condition = {};
  // When the item expires: a time to live from now on, or a moment of Unix time by the server's clock; at most one of them.
  // An item lives for its ttl, and longer by no more than the client's doubt about the server's clock: the time of an exchange
  // and 0.1 s. (A write that is started does not ask for the clock first: for it, 1/100 of the time since the last exchange.)
  // Neither: never; but INCREMENT, APPEND and PREPEND then keep what the item has. A moment that has passed: at once.
  std::chrono::microseconds ttl{0};
  int64_t expiry_unix_us = 0;
  uint32_t user_flags = 0;  // kept with the item for the application; PUT only
};

// What is known of an item besides its value.
struct ItemInfo {
  uint64_t version = 0;     // grows with every write of the key, also across delete and re-insertion
  uint32_t user_flags = 0;
  int64_t expiry_unix_us = 0;  // 0: never
};

struct WriteResult {
  uint64_t version = 0;  // of the item as it is now; of the deletion for a DELETE
};

struct IncrementResult {
  int64_t value = 0;
  uint64_t version = 0;
};

struct GetResult {
  absl::Status status = {};
  std::string value = {};  // unspecified unless status is OK
  ItemInfo info = {};
};

struct PutRequest {
  std::string_view key = {};
  std::string_view value = {};
};

// What became of an operation that was started.
struct Completion {
  uint64_t tag = 0;
  absl::Status status = {};
  std::string value = {};  // GET
  size_t length = 0;       // GET into a buffer: of the value
  ItemInfo info = {};      // GET: of the item. Writes: the version
  int64_t number = 0;      // INCREMENT: the new value
};

// How a started operation comes back: `done` is called by Poll or Wait (never by Start... itself); without it they
// return the completion. `done` may start further operations, and must not call Poll, Wait or anything that blocks.
struct Async {
  uint64_t tag = 0;
  std::function<void(Completion& completion)> done = {};
};

struct ScanOptions {
  std::chrono::nanoseconds deadline{0};  // for the whole scan; 0: none; negative: passed already
  std::string_view prefix = {};          // only keys that begin with it
  // Where to go on: what an earlier Scan returned. Empty: from the beginning. A cursor is good for one run of kvd: after a
  // restart it is FAILED_PRECONDITION, for there is nothing left to go on with.
  std::string cursor = {};
  // Stops after the bucket in which so many items have been visited. 0: at the end.
  uint64_t count = 0;
};

// Counted since Connect; only this client object's own operations.
struct ClientCounters {
  uint64_t gets = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t reads = 0;            // one-sided reads: READs, or their equivalent in loads
  uint64_t read_bytes = 0;
  uint64_t read_chains = 0;      // doorbells for them, where the region is remote
  uint64_t torn_reads = 0;       // reads that did not verify and were repeated
  uint64_t moved_items = 0;      // items found DEAD or WRITING and looked up again
  uint64_t redirects = 0;        // buckets that had been split
  uint64_t confirmations = 0;    // misses that were read a second time
  uint64_t location_hits = 0;    // GETs answered by one exact read of a remembered location
  uint64_t stale_locations = 0;  // remembered locations that held the key's item no more
  uint64_t gets_by_request = 0;  // GETs that the server had to answer
  uint64_t expired = 0;          // items that were found, and not returned since their time had passed
  uint64_t requests = 0;         // requests sent, of any kind
  uint64_t repeated = 0;         // of these, sent again after a session had ended
  uint64_t reconnects = 0;       // sessions made after the first
  uint64_t read_errors = 0;      // sessions that broke while a READ was under way
};

// Times of operations of one kind, in nanoseconds. Percentiles are rounded up by less than 0.8 %.
struct LatencySummary {
  uint64_t count = 0;  // that were timed; 0: the rest is 0 too
  uint64_t min_ns = 0;
  uint64_t mean_ns = 0;
  uint64_t p50_ns = 0;
  uint64_t p90_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t p999_ns = 0;
  uint64_t max_ns = 0;
};

// What a client object did and met since Connect, as Client::Observe tells it. Times are from the
// call to its return, or from Start... to when Poll or Wait take notice; only of operations that
// succeeded or were answered, a sample of them (ClientOptions::latency_sampling).
struct ClientObservation {
  // Told now and then: behind counters() by some hundred GETs or writes (eight times
  // latency_sampling at the most; with 1 by none), and for as long as the client does nothing.
  ClientCounters counters = {};
  LatencySummary known_gets = {};   // that one read of a remembered location answered
  LatencySummary cold_gets = {};    // others that found an item
  LatencySummary missed_gets = {};  // that found none
  // Calls of MultiGet, whole. Keys that it has to look for one by one count among the GETs too.
  LatencySummary multi_gets = {};
  LatencySummary writes = {};
  LatencySummary multi_writes = {};  // calls of MultiPut and MultiDelete, whole; each
  LatencySummary requests = {};      // others: Ping, a part of Stats or Flush; each
  uint64_t connection_errors = 0;
  // The first one of the last connection that had one; empty while there was none.
  ConnectionError first_error = {};
};

class BufferMemory;
class ClientFactory;

// Memory that values are read into and written from without a copy in between. It is registered with each session that it is
// used in, once, and outlives them. Several clients may use it in turn, from one thread at a time. A handle; give it up (or the
// client) whenever you like: memory that an operation still needs stays until that has ended.
class Buffer {
 public:
  Buffer() = default;  // of no bytes
  Buffer(Buffer&&) = default;
  Buffer& operator=(Buffer&&) = default;

  // Page-aligned. Yours to read and write while no operation that uses the buffer is under way.
  char* data() const;
  size_t size() const;
  std::span<char> bytes() const { return {data(), size()}; }

  // An operation still uses the buffer: one that was started, or one that ended with DEADLINE_EXCEEDED and that the device, or
  // the server, is not done with. Changes in calls of the client only (Poll, for one).
  bool busy() const;

 private:
  friend class Client;
  explicit Buffer(std::shared_ptr<BufferMemory> memory);
  std::shared_ptr<BufferMemory> memory_;
};

class Client {
 public:
  // `target`: "shm:PATH", a path with a '/' or ending in ".sock", or empty for the default socket of this user; "rdma:HOST:PORT" or
  // "HOST:PORT" for a kvd that is reached by RDMA (an IPv6 address in brackets; port 7711 if "rdma:" names none). Several,
  // separated by commas, are ways to the same kvd in order of preference: the next is taken while one does not work. Blocks
  // up to the deadline. UNAVAILABLE names where and what was wrong; INVALID_ARGUMENT names the target.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(std::string_view target, const ClientOptions& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // --- Reading ---

  // Stores the key's current value in `value`, whose capacity is reused; `info` may be null. On any error `value` is
  // unspecified but valid.
  absl::Status Get(std::string_view key, std::string& value, ItemInfo* info = nullptr,
                   const OperationOptions& options = {});
  absl::StatusOr<std::string> Get(std::string_view key, const OperationOptions& options = {});

  // Places the value in `buffer` and returns its length. OUT_OF_RANGE: the value is longer than the buffer (the
  // message says how long), which is then unspecified.
  absl::StatusOr<size_t> GetInto(std::string_view key, std::span<char> buffer, const OperationOptions& options = {});

  // The same into a buffer of this client: over RDMA the READ itself puts the value there, over shared memory the one copy
  // that there is. (An item with an expiry or user flags costs a copy more the first time.) INVALID_ARGUMENT: the buffer has no
  // bytes. After DEADLINE_EXCEEDED the buffer may be busy.
  absl::StatusOr<size_t> GetInto(std::string_view key, const Buffer& buffer, const OperationOptions& options = {});

  // Memory for values of up to `bytes`. RESOURCE_EXHAUSTED, when it is first used: a limit of this process (memlock over RDMA,
  // 64 buffers and 16 GiB per session, of which a Put of a long value takes one for itself).
  absl::StatusOr<Buffer> AllocateBuffer(size_t bytes);

  // One-sided, like Get, without copying the value out.
  absl::StatusOr<bool> Exists(std::string_view key, const OperationOptions& options = {});

  // GETs of many keys at once: over RDMA the READs of all go out as chains under one doorbell each, as many as the connection
  // lets be outstanding. `results` has as many elements as `keys`, and gets a status each; a key may occur twice. The capacity
  // of the strings is reused. Each GET is linearizable, the batch as a whole is no snapshot. INVALID_ARGUMENT: the sizes
  // differ. Otherwise OK, whatever the keys' own statuses.
  absl::Status MultiGet(std::span<const std::string_view> keys, std::span<GetResult> results,
                        const OperationOptions& options = {});

  // --- Writing ---

  // Ok once the server has acknowledged: every later GET, by any client, sees this value or a later one.
  absl::StatusOr<WriteResult> Put(std::string_view key, std::string_view value, const WriteOptions& options = {});

  // The first `bytes` of the buffer. Values too long for a request are fetched from there by the server. Until this has
  // returned, and after DEADLINE_EXCEEDED as long as the buffer is busy, it must not be changed: what the server stores would be a
  // mixture.
  absl::StatusOr<WriteResult> PutFrom(std::string_view key, const Buffer& buffer, size_t bytes,
                                      const WriteOptions& options = {});

  // NOT_FOUND if there was nothing to delete. Of the options: deadline, and the condition IfVersion.
  absl::Status Delete(std::string_view key, const WriteOptions& options = {});

  // Adds to a value that is a signed 64-bit number in decimal ("-12"; no spaces, no leading zeroes). A key without an item
  // counts as 0, unless the condition asks for one.
  absl::StatusOr<IncrementResult> Increment(std::string_view key, int64_t delta, const WriteOptions& options = {});

  // Puts `piece` behind, or before, the value that is there; a key without an item gets it as its value, unless the condition
  // asks for one. IfAbsent is INVALID_ARGUMENT: that is Put.
  absl::StatusOr<WriteResult> Append(std::string_view key, std::string_view piece, const WriteOptions& options = {});
  absl::StatusOr<WriteResult> Prepend(std::string_view key, std::string_view piece, const WriteOptions& options = {});

  // Sets the item's expiry as the options say; without ttl and expiry_unix_us it never expires any more. The item has a new
  // version then. NOT_FOUND. Conditions: IfVersion.
  absl::StatusOr<WriteResult> Touch(std::string_view key, const WriteOptions& options);
  // The same, and returns the value that was touched. With an expiry that has passed already the item goes and there is
  // no value left to return: NOT_FOUND.
  absl::Status GetAndTouch(std::string_view key, std::string& value, ItemInfo* info, const WriteOptions& options);

  // A status for each, in order; all are sent before the first answer is waited for. Of two writes of one key in a batch
  // the later one comes last.
  std::vector<absl::StatusOr<WriteResult>> MultiPut(std::span<const PutRequest> puts, const WriteOptions& options = {});
  std::vector<absl::Status> MultiDelete(std::span<const std::string_view> keys, const WriteOptions& options = {});

  // Deletes all items whose keys begin with `prefix`, all if it is empty, and returns how many. An item that is written
  // while this runs may stay. The deadline is for each step, of which there are many.
  absl::StatusOr<uint64_t> Flush(std::string_view prefix, const OperationOptions& options = {});

  // --- Many operations under way ---

  // These return at once: key and value are copied. Whatever is wrong comes back as the completion's status. As many may be
  // under way as there is memory for; beyond credits and READ depth they wait in the client. Nothing moves but in Poll, Wait
  // and the blocking calls.
  void StartGet(std::string_view key, Async async, const OperationOptions& options = {});
  // `buffer` stays the caller's, and untouched, until the completion.
  void StartGetInto(std::string_view key, std::span<char> buffer, Async async, const OperationOptions& options = {});
  void StartGetInto(std::string_view key, const Buffer& buffer, Async async, const OperationOptions& options = {});
  void StartPutFrom(std::string_view key, const Buffer& buffer, size_t bytes, Async async,
                    const WriteOptions& options = {});
  void StartPut(std::string_view key, std::string_view value, Async async, const WriteOptions& options = {});
  void StartDelete(std::string_view key, Async async, const WriteOptions& options = {});
  void StartIncrement(std::string_view key, int64_t delta, Async async, const WriteOptions& options = {});
  void StartAppend(std::string_view key, std::string_view piece, Async async, const WriteOptions& options = {});
  void StartPrepend(std::string_view key, std::string_view piece, Async async, const WriteOptions& options = {});
  void StartTouch(std::string_view key, Async async, const WriteOptions& options = {});

  // Moves what is under way on, calls callbacks, and stores completions that have none in `completions`; returns how many
  // were stored and called. Never blocks, except for an attempt to connect after the session broke. Where `completions` has no
  // room, completions without a callback stay, count as outstanding, and hold up no callbacks.
  size_t Poll(std::span<Completion> completions);

  // As Poll, and blocks until there is at least one completion or `timeout` has passed: 0 then, or if nothing is outstanding.
  // With no room at all (`Wait({}, ...)`) that is one with a callback: a program whose operations do not all have callbacks must
  // give room, or what has none will be outstanding for ever.
  size_t Wait(std::span<Completion> completions, std::chrono::nanoseconds timeout);

  // Operations that were started and have not come back.
  size_t outstanding() const;

  // For event loops: a descriptor that is readable when Poll has something to do, valid as long as the client, and to be
  // waited for only after PrepareToSleep has returned true; false: call Poll again first. It is the client's: do not read it.
  // ResourceExhausted: no descriptors.
  absl::StatusOr<int> EventFd();
  bool PrepareToSleep();

  // --- All keys ---

  // Calls `visit(key, value, info)` for every item, reading the region one-sidedly; stops early when it returns false.
  // A key that is present all the time is visited at least once; one that is written meanwhile may be visited twice,
  // with both values. The views are valid during the call only. `visit` must not use this client. Returns the cursor to go on
  // with, empty at the end; one from an early stop visits the items of its bucket again.
  using Visitor = std::function<bool(std::string_view key, std::string_view value, const ItemInfo& info)>;
  absl::StatusOr<std::string> Scan(const Visitor& visit, const ScanOptions& options = {});

  // --- The server, and this client ---

  // A request to the server and back; returns how long it took.
  absl::StatusOr<std::chrono::nanoseconds> Ping(const OperationOptions& options = {});

  // The server's statistics as name and value, in the server's order.
  absl::StatusOr<std::vector<std::pair<std::string, std::string>>> Stats(const OperationOptions& options = {});

  // For a session of the role admin, as this kvd's own user and root have it on its host, and keys
  // that say so; PERMISSION_DENIED for others. Every session of the server, each as names and
  // values: session, client, name, transport, address, pid, uid, key, role, since_unix_us, credits,
  // requests, writes, received_bytes, sent_bytes; and what its client says of its reading, of which
  // the server knows nothing by itself: reported_gets, reported_hits, reported_misses,
  // reported_reads, reported_read_bytes, reported_torn_reads, reported_retries, reported_fallbacks,
  // reported_read_errors.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  absl::StatusOr<std::vector<Facts>> Sessions(const OperationOptions& options = {});
  // Likewise, the requests that took the server long (kvd --slow_log), the newest first, 128 at the most: at_unix_us,
  // requests (that were late with it, itself included), operation, session, name, key_bytes, value_bytes, us (in all),
  // phase (that took longest), waiting_us, pulling_us, evicting_us, executing_us, stalled_us.
  absl::StatusOr<std::vector<Facts>> SlowRequests(const OperationOptions& options = {});
  // Ends the sessions that `who` means, this one excepted, and returns how many: session:NUMBER,
  // client:HEX, name:NAME (as Sessions shows it), key:NAME, user:UID or address:HOST. Without such a prefix digits are a
  // session's number, and anything else is a name; INVALID_ARGUMENT where somebody else could be meant as well (a client
  // calls itself as another one's number or key): the text says who, and nobody's session ends. A client that is let in
  // again comes back by itself: take away its key first.
  absl::StatusOr<uint64_t> Kick(std::string_view who, const OperationOptions& options = {});

  // The server's clock now, in microseconds of Unix time: what expiry is judged by. It is known to within the time that the
  // quickest exchange with the server took, plus 1/100 of the time since then; while
  // items with an expiry are read that is asked again every 10 seconds.
  int64_t ServerUnixUs() const;

  const ClientCounters& counters() const;

  // How this client does. Unlike all else any thread may call it at any time while the client
  // exists, also while another one uses the client; it does not hold that one up.
  ClientObservation Observe() const;

  // Where this client is connected, for people: "shm:/run/kvd/kvd.sock".
  const std::string& target() const;

 private:
  friend class ClientFactory;
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvd
