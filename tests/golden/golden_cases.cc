#include "tests/golden/golden_cases.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "absl/strings/escaping.h"
#include "common/admission/proof.h"
#include "common/base/checksum.h"
#include "common/base/hash.h"
#include "common/base/string_view.h"
#include "common/layout/bucket.h"
#include "common/layout/frames.h"
#include "common/layout/hello.h"
#include "common/layout/item.h"
#include "common/layout/reported_counts.h"
#include "common/protocol/geometry.h"
#include "common/protocol/handshake.h"
#include "common/transport/shm/session_segment.h"
#include "tests/golden/golden_region_cases.h"

namespace kvd::test {
namespace {

// A nonce, as hexadecimal.
std::string Repeated(const std::string& byte) {
  std::string text;
  for (size_t i = 0; i < kNonceBytes; ++i) text += byte;
  return text;
}

// --- handshake ---

void AddHandshake(std::vector<GoldenCase>& cases) {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  hello.client_id = 0xfedcba9876543210;
  hello.credits_wanted = 16;
  hello.pid = 4712;
  std::strncpy(hello.name, "kvcli", sizeof(hello.name) - 1);
  cases.push_back({"hello",
                   "hello",
                   Json::object(),
                   {{"version_min", kProtocolVersion},
                    {"version_max", kProtocolVersion},
                    {"feature_bits", 0},
                    {"client_id", 0xfedcba9876543210},
                    {"credits_wanted", 16},
                    {"pid", 4712},
                    {"name", "kvcli"}},
                   BytesOf(hello)});

  Transcript said;
  said.transport = "rdma";
  const uint8_t client_address[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2};
  const uint8_t server_address[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  std::copy_n(client_address, 16, said.ends.client.address.begin());
  std::copy_n(server_address, 16, said.ends.server.address.begin());
  said.ends.client.queue_pair = 17;
  said.ends.server.queue_pair = 18;
  said.hello = hello;
  said.challenge.magic = kChallengeMagic;
  said.challenge.client_queue_pair = 17;
  said.challenge.server_queue_pair = 18;
  std::fill(std::begin(said.challenge.nonce), std::end(said.challenge.nonce), 0xa5);
  cases.push_back(
      {"challenge",
       "challenge",
       Json::object(),
       {{"client_queue_pair", 17}, {"server_queue_pair", 18}, {"nonce", Repeated("a5")}},
       BytesOf(said.challenge)});

  said.answer.magic = kChallengeAnswerMagic;
  std::strncpy(said.answer.key_name, "app-2026-11", sizeof(said.answer.key_name) - 1);
  std::fill(std::begin(said.answer.nonce), std::end(said.answer.nonce), 0x5a);
  const std::string secret = "sixteen bytes...";
  const Proof proof = ClientProof(secret, said);
  std::copy(proof.begin(), proof.end(), said.answer.proof);
  cases.push_back({"challenge_answer",
                   "challenge_answer",
                   {{"transport", "rdma"},
                    {"secret", secret},
                    {"client_end", absl::BytesToHexString(ToAbsl(BytesOf(said.ends.client)))},
                    {"server_end", absl::BytesToHexString(ToAbsl(BytesOf(said.ends.server)))},
                    {"hello", absl::BytesToHexString(ToAbsl(BytesOf(said.hello)))},
                    {"challenge", absl::BytesToHexString(ToAbsl(BytesOf(said.challenge)))}},
                   {{"key_name", "app-2026-11"}, {"nonce", Repeated("5a")}, {"proved", true}},
                   BytesOf(said.answer)});

  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.incarnation = kIncarnation;
  welcome.region_bytes = kRegionBytes;
  welcome.region_address = 0x7f0000000000;
  welcome.region_key = 0x00123456;
  welcome.bucket_bytes = kBucketBytes;
  welcome.shard_count = kShards;
  welcome.directory_entries = kDirectoryEntries;
  welcome.directory_offset = sizeof(Superblock);
  welcome.session_id = 99;
  welcome.credits = 16;
  welcome.frame_bytes = kFrameBytesDefault;
  welcome.max_value_bytes = uint64_t{64} << 20;
  welcome.flags = kWelcomeRepliesKept | kWelcomeWantsHits;
  welcome.server_unix_us = 1'700'000'001'000'000;
  welcome.server_pid = 4711;
  welcome.role = static_cast<uint32_t>(Role::kReadWrite);
  cases.push_back({"welcome_admitted",
                   "welcome",
                   Json::object(),
                   {{"version", kProtocolVersion},
                    {"version_min", kProtocolVersion},
                    {"status", "admitted"},
                    {"feature_bits", 0},
                    {"incarnation", kIncarnation},
                    {"region_bytes", kRegionBytes},
                    {"region_address", 0x7f0000000000},
                    {"region_key", 0x123456},
                    {"bucket_bytes", kBucketBytes},
                    {"shard_count", kShards},
                    {"directory_entries", kDirectoryEntries},
                    {"directory_offset", sizeof(Superblock)},
                    {"session_id", 99},
                    {"credits", 16},
                    {"frame_bytes", kFrameBytesDefault},
                    {"max_value_bytes", uint64_t{64} << 20},
                    {"replies_kept", true},
                    {"wants_hits", true},
                    {"server_unix_us", 1'700'000'001'000'000},
                    {"server_pid", 4711},
                    {"role", "read-write"},
                    {"proof", std::string(64, '0')},
                    {"text", ""}},
                   BytesOf(welcome)});

  cases.push_back({"welcome_refused",
                   "welcome",
                   Json::object(),
                   {{"version", kProtocolVersion},
                    {"version_min", kProtocolVersion},
                    {"status", "full"},
                    {"text", "8 clients are connected"}},
                   BytesOf(MakeRefusal(WelcomeStatus::kFull, "8 clients are connected"))});
}

// --- requests and replies ---

struct RequestSpec {
  Opcode opcode;
  const char* name;
  std::string key;
  std::string value;
  bool pulled = false;
  uint64_t expiry_unix_us = 0;
  uint32_t user_flags = 0;
  uint64_t compare_version = 0;
  uint64_t argument = 0;
  uint8_t flags = 0;  // beside those that follow from the fields
};

void AddRequest(std::vector<GoldenCase>& cases, std::string name, const RequestSpec& spec) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(spec.opcode);
  header.flags = static_cast<uint8_t>(
      spec.flags | (spec.compare_version != 0 ? kRequestIfVersion : 0) |
      (spec.pulled ? kRequestPull : 0) | (spec.expiry_unix_us != 0 ? kRequestExpiry : 0) |
      (spec.user_flags != 0 ? kRequestUserFlags : 0));
  header.key_len = static_cast<uint16_t>(spec.key.size());
  header.user_flags = spec.user_flags;
  header.request_id = cases.size();
  header.value_len = spec.pulled ? 100'000 : spec.value.size();
  header.compare_version = spec.compare_version;
  header.expiry_unix_us = spec.expiry_unix_us;
  header.argument = spec.argument;
  Json content = {{"opcode", spec.name}, {"request_id", header.request_id}, {"key", spec.key}};
  content["value_len"] = header.value_len;
  if (spec.pulled) {
    header.pull_address = 0x1000;
    header.pull_key = 5;
    content["pull_address"] = 0x1000;
    content["pull_key"] = 5;
  } else {
    content["value"] = spec.value;
  }
  if (spec.expiry_unix_us != 0) content["expiry_unix_us"] = spec.expiry_unix_us;
  if (spec.user_flags != 0) content["user_flags"] = spec.user_flags;
  static constexpr std::pair<uint8_t, const char*> kFlags[] = {{kRequestRepeat, "repeat"},
                                                               {kRequestIfAbsent, "if_absent"},
                                                               {kRequestIfPresent, "if_present"},
                                                               {kRequestIfVersion, "if_version"},
                                                               {kRequestWithValue, "with_value"}};
  for (const auto& [flag, flag_name] : kFlags) {
    if ((header.flags & flag) != 0) content[flag_name] = true;
  }
  content["compare_version"] = spec.compare_version;
  content["argument"] = spec.argument;
  cases.push_back({std::move(name), "request", Json::object(), content,
                   BytesOf(header) + spec.key + spec.value});
}

void AddRequests(std::vector<GoldenCase>& cases) {
  AddRequest(cases, "request_ping",
             {.opcode = Opcode::kPing, .name = "ping", .key = "", .value = "echo"});
  AddRequest(cases, "request_get",
             {.opcode = Opcode::kGet, .name = "get", .key = "user:1000", .value = ""});
  AddRequest(cases, "request_put",
             {.opcode = Opcode::kPut, .name = "put", .key = "user:1000", .value = "the value"});
  AddRequest(
      cases, "request_put_pull",
      {.opcode = Opcode::kPut, .name = "put", .key = "user:1000", .value = "", .pulled = true});
  AddRequest(cases, "request_put_all_fields",
             {.opcode = Opcode::kPut,
              .name = "put",
              .key = "user:1000",
              .value = "the value",
              .expiry_unix_us = 1'893'456'000'000'000,
              .user_flags = 0xcafe0001,
              .compare_version = 1001});
  AddRequest(cases, "request_delete",
             {.opcode = Opcode::kDelete, .name = "delete", .key = "user:1000", .value = ""});
  AddRequest(cases, "request_exists",
             {.opcode = Opcode::kExists, .name = "exists", .key = "user:1000", .value = ""});
  AddRequest(cases, "request_stat",
             {.opcode = Opcode::kStat, .name = "stat", .key = "", .value = "", .argument = 4000});
  AddRequest(cases, "request_release",
             {.opcode = Opcode::kRelease, .name = "release", .key = "", .value = ""});
  AddRequest(cases, "request_put_if_absent_again",
             {.opcode = Opcode::kPut,
              .name = "put",
              .key = "user:1000",
              .value = "the value",
              .flags = kRequestIfAbsent | kRequestRepeat});
  AddRequest(cases, "request_increment",
             {.opcode = Opcode::kIncrement,
              .name = "increment",
              .key = "visits",
              .value = "",
              .argument = ~uint64_t{0},
              .flags = kRequestIfPresent});
  AddRequest(cases, "request_append",
             {.opcode = Opcode::kAppend, .name = "append", .key = "log", .value = "tail"});
  AddRequest(cases, "request_prepend",
             {.opcode = Opcode::kPrepend, .name = "prepend", .key = "log", .value = "head"});
  AddRequest(cases, "request_touch",
             {.opcode = Opcode::kTouch,
              .name = "touch",
              .key = "user:1000",
              .value = "",
              .expiry_unix_us = 1'893'456'000'000'000,
              .flags = kRequestWithValue});
  AddRequest(
      cases, "request_flush",
      {.opcode = Opcode::kFlush, .name = "flush", .key = "user:", .value = "", .argument = 7});
  AddRequest(cases, "request_hits",
             {.opcode = Opcode::kHits, .name = "hits", .key = "", .value = "8 bytes."});
  AddRequest(
      cases, "request_sessions",
      {.opcode = Opcode::kSessions, .name = "sessions", .key = "", .value = "", .argument = 4096});
  AddRequest(cases, "request_kick",
             {.opcode = Opcode::kKick, .name = "kick", .key = "key:app-2026-11", .value = ""});
}

struct ReplySpec {
  Opcode opcode;
  const char* name;
  ReplyStatus status = ReplyStatus::kOk;
  const char* status_name = "ok";
  uint8_t flags = 0;
  uint32_t user_flags = 0;
  uint64_t version = 0;
  Slot slot = kEmptySlot;
  uint64_t value_len = 0;
  uint64_t expiry_unix_us = 0;
  uint64_t result = 0;
  std::string payload;
};

void AddReply(std::vector<GoldenCase>& cases, std::string name, const ReplySpec& spec) {
  ReplyHeader header{};
  header.opcode = static_cast<uint8_t>(spec.opcode);
  header.flags = spec.flags;
  header.status = static_cast<uint16_t>(spec.status);
  header.user_flags = spec.user_flags;
  header.request_id = cases.size();
  header.version = spec.version;
  header.slot = spec.slot;
  header.value_len = spec.value_len;
  header.expiry_unix_us = spec.expiry_unix_us;
  header.result = spec.result;
  Json content = {{"opcode", spec.name},
                  {"status", spec.status_name},
                  {"request_id", header.request_id},
                  {"inline", (spec.flags & kReplyInline) != 0},
                  {"held", (spec.flags & kReplyHeld) != 0},
                  {"error_text", (spec.flags & kReplyErrorText) != 0}};
  if ((spec.flags & kReplyUserFlags) != 0) content["user_flags"] = spec.user_flags;
  content["version"] = spec.version;
  if (spec.slot != kEmptySlot) {
    content["slot"] = {{"tag", TagOf(spec.slot)},
                       {"item_bytes", ItemBytesOf(spec.slot)},
                       {"location", ToBytes(LocationOf(spec.slot))}};
  }
  content["value_len"] = spec.value_len;
  content["expiry_unix_us"] = spec.expiry_unix_us;
  content["result"] = spec.result;
  content["payload"] = spec.payload;
  cases.push_back(
      {std::move(name), "reply", Json::object(), content, BytesOf(header) + spec.payload});
}

void AddReplies(std::vector<GoldenCase>& cases) {
  const Slot slot = PackSlot(0xabc, 100'000, RegionOffset{0x2000000});
  const std::string text = "frame is shorter than a request header";
  AddReply(cases, "reply_ping",
           {.opcode = Opcode::kPing,
            .name = "ping",
            .flags = kReplyInline,
            .value_len = 4,
            .result = 1'893'456'000'000'001,
            .payload = "echo"});
  AddReply(cases, "reply_get_inline",
           {.opcode = Opcode::kGet,
            .name = "get",
            .flags = kReplyInline | kReplyUserFlags,
            .user_flags = 0xcafe0001,
            .version = 1002,
            .slot = slot,
            .value_len = 9,
            .expiry_unix_us = 1'893'456'000'000'000,
            .payload = "the value"});
  AddReply(cases, "reply_get_held",
           {.opcode = Opcode::kGet,
            .name = "get",
            .flags = kReplyHeld,
            .version = 1003,
            .slot = slot,
            .value_len = 99'900,
            .payload = ""});
  AddReply(cases, "reply_put",
           {.opcode = Opcode::kPut, .name = "put", .version = 1004, .slot = slot, .payload = ""});
  AddReply(cases, "reply_put_too_large",
           {.opcode = Opcode::kPut,
            .name = "put",
            .status = ReplyStatus::kTooLarge,
            .status_name = "too_large",
            .value_len = uint64_t{64} << 20,
            .payload = ""});
  AddReply(cases, "reply_delete_not_found",
           {.opcode = Opcode::kDelete,
            .name = "delete",
            .status = ReplyStatus::kNotFound,
            .status_name = "not_found",
            .payload = ""});
  AddReply(cases, "reply_exists",
           {.opcode = Opcode::kExists,
            .name = "exists",
            .version = 1002,
            .slot = slot,
            .value_len = 99'900,
            .payload = ""});
  AddReply(cases, "reply_stat",
           {.opcode = Opcode::kStat, .name = "stat", .value_len = 4010, .payload = "items 100\n"});
  AddReply(cases, "reply_release", {.opcode = Opcode::kRelease, .name = "release", .payload = ""});
  AddReply(cases, "reply_increment",
           {.opcode = Opcode::kIncrement,
            .name = "increment",
            .version = 1005,
            .slot = slot,
            .value_len = 2,
            .result = 42,
            .payload = ""});
  AddReply(cases, "reply_increment_not_number",
           {.opcode = Opcode::kIncrement,
            .name = "increment",
            .status = ReplyStatus::kNotNumber,
            .status_name = "not_number",
            .payload = ""});
  AddReply(cases, "reply_increment_overflow",
           {.opcode = Opcode::kIncrement,
            .name = "increment",
            .status = ReplyStatus::kOverflow,
            .status_name = "overflow",
            .payload = ""});
  AddReply(cases, "reply_malformed",
           {.opcode = Opcode::kPut,
            .name = "put",
            .status = ReplyStatus::kMalformed,
            .status_name = "malformed",
            .flags = kReplyErrorText,
            .value_len = text.size(),
            .payload = text});
}

// --- shared-memory sessions ---

void AddSession(std::vector<GoldenCase>& cases) {
  const SessionLayout layout = SessionLayout::Of(16, kFrameBytesDefault);
  SessionHeader header{};
  header.magic = kSessionMagic;
  header.layout_version = kSessionLayoutVersion;
  header.credits = layout.credits;
  header.frame_bytes = layout.frame_bytes;
  header.slot_bytes = layout.slot_bytes;
  header.client_sleeping = 1;
  header.closed = 14;
  header.text_bytes = 11;
  std::memcpy(header.text, "the reason.", 11);
  cases.push_back({"session_header",
                   "session_header",
                   Json::object(),
                   {{"layout_version", 1},
                    {"credits", 16},
                    {"frame_bytes", kFrameBytesDefault},
                    {"slot_bytes", layout.slot_bytes},
                    {"requests_offset", layout.requests_offset()},
                    {"replies_offset", layout.replies_offset()},
                    {"segment_bytes", layout.segment_bytes()},
                    {"server_sleeping", 0},
                    {"client_sleeping", 1},
                    {"closed", 14},
                    {"text", "the reason."}},
                   BytesOf(header)});

  const std::string frame = "a frame of a ring";
  const SlotHeader slot{3, static_cast<uint32_t>(frame.size())};
  cases.push_back({"ring_slot",
                   "ring_slot",
                   Json::object(),
                   {{"stamp", 3}, {"frame", frame}},
                   BytesOf(slot) + frame});

  const SegmentNotice notice{static_cast<uint32_t>(SegmentAction::kRegister), 5, uint64_t{1} << 20};
  cases.push_back({"segment_notice",
                   "segment_notice",
                   Json::object(),
                   {{"action", "register"}, {"segment_id", 5}, {"length_bytes", uint64_t{1} << 20}},
                   BytesOf(notice)});
}

}  // namespace

std::string GoldenCase::JsonText() const {
  return Json({{"kind", kind}, {"context", context}, {"content", content}}).dump(2) + "\n";
}

std::vector<GoldenCase> GoldenCases() {
  std::vector<GoldenCase> cases;
  AddRegionCases(cases);
  AddHandshake(cases);
  AddRequests(cases);
  AddReplies(cases);
  AddSession(cases);
  // Behind the others, whose numbers stay.
  AddRequest(
      cases, "request_hits_counts",
      {.opcode = Opcode::kHits,
       .name = "hits",
       .key = "",
       .value = "9 countsof eightbytes ininfront of a hash of a key in 8 bytes.. more of 8 bytes.",
       .argument = kReportedCounts});
  return cases;
}

std::string VectorsText() {
  std::string pattern;
  for (size_t i = 0; i < 5000; ++i) pattern += static_cast<char>(PatternByte(i));
  Json checksums = Json::array();
  const auto checksum = [&](size_t length, uint64_t seed) {
    checksums.push_back({{"length", length},
                         {"seed", seed},
                         {"xxh3_64", Checksum64(pattern.data(), length, seed)}});
  };
  for (size_t length = 0; length <= 300; ++length)
    checksum(length, length % 3 == 0 ? 0 : kIncarnation * length);
  for (const size_t length : {512, 1023, 1024, 1025, 1088, 2048, 2049, 4096, 5000}) {
    checksum(length, 0);
    checksum(length, kIncarnation);
  }
  Json mixes = Json::array();
  for (const uint64_t word : {uint64_t{0}, uint64_t{1}, kIncarnation, ~uint64_t{0}}) {
    mixes.push_back({{"word", word}, {"mix64", Mix64(word)}});
  }
  Json sizes = Json::array();
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{1}, uint64_t{8}, uint64_t{2032}, uint64_t{2033}, uint64_t{2040},
        uint64_t{2041}, uint64_t{2049}, uint64_t{4080}, uint64_t{4081}, uint64_t{100'000},
        uint64_t{64} << 20, uint64_t{1} << 40}) {
    sizes.push_back(
        {{"bytes", bytes}, {"code", EncodeItemSize(bytes)}, {"occupied", RoundUpItemSize(bytes)}});
  }
  Json keys = Json::array();
  const uint64_t hash_seed = Mix64(kIncarnation ^ 0x68617368);
  for (const std::string_view key :
       {"a", "user:1000", "apple", "a key of more than sixteen bytes"}) {
    const uint64_t hash = HashKey(key, hash_seed);
    keys.push_back({{"key", std::string(key)},
                    {"incarnation", kIncarnation},
                    {"hash", hash},
                    {"shard_of_2", ShardOf(hash, 2)},
                    {"shard_of_7", ShardOf(hash, 7)},
                    {"tag", SlotTag(hash)},
                    {"bucket_of_1", ToNumber(BucketOf(hash, 1))},
                    {"bucket_of_1500", ToNumber(BucketOf(hash, 1500))},
                    {"bucket_of_1048576", ToNumber(BucketOf(hash, 1048576))}});
  }
  return Json({{"keys", keys}, {"sizes", sizes}, {"mix64", mixes}, {"checksums", checksums}})
             .dump(1) +
         "\n";
}

}  // namespace kvd::test
