#include "tests/golden/decode.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "absl/strings/escaping.h"
#include "common/admission/proof.h"
#include "common/admission/role.h"
#include "common/layout/bucket.h"
#include "common/layout/checked_word.h"
#include "common/layout/superblock.h"
#include "common/protocol/handshake.h"
#include "common/protocol/judge_item.h"
#include "common/protocol/request_codec.h"
#include "common/transport/shm/session_segment.h"

namespace kvd::test {
namespace {

Json Error(std::string_view why) { return {{"error", std::string(why)}}; }

Json ErrorOf(const absl::Status& status) { return Error(std::string(status.message())); }

std::span<const std::byte> Span(std::string_view bytes) { return std::as_bytes(std::span(bytes)); }

template <typename T>
std::optional<T> Take(std::string_view bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T object;
  std::memcpy(&object, bytes.data(), sizeof(object));
  return object;
}

template <size_t kBytes>
std::string Text(const char (&field)[kBytes]) {
  return std::string(field, strnlen(field, kBytes));
}

Json Item(std::string_view bytes, uint64_t incarnation, RegionOffset location) {
  auto header = Take<ItemHeader>(bytes);
  if (!header) return Error("short");
  const ItemExpectation expected{incarnation, location, {}, 0};
  ItemView view;
  const ItemVerdict verdict = JudgeItem(Span(bytes), expected, view);
  const char* state = verdict == ItemVerdict::kCurrent   ? "live"
                      : verdict == ItemVerdict::kDead    ? "dead"
                      : verdict == ItemVerdict::kWriting ? "writing"
                                                         : nullptr;
  if (state == nullptr) return Error("torn");
  // The content of an item that must not be returned, as it would be if it were live.
  header->version_and_state = PackVersion(VersionOf(header->version_and_state), ItemState::kLive);
  std::string live(bytes);
  std::memcpy(live.data(), &*header, sizeof(*header));
  if (JudgeItem(Span(live), expected, view) != ItemVerdict::kCurrent) return Error("torn");
  Json item = {{"state", state}, {"version", view.version}};
  uint8_t flags = 0;
  if (ShortKeyBytes(header->check_and_lengths) == 0) {
    flags = Take<LongItemHeader>(bytes.substr(kItemHeaderBytes))->flags;
  }
  if ((flags & kItemHasExpiry) != 0) item["expiry_unix_us"] = view.expiry_unix_us;
  if ((flags & kItemHasUserFlags) != 0) item["user_flags"] = view.user_flags;
  item["key"] = std::string(view.key);
  item["value"] = std::string(view.value);
  return item;
}

Json DecodeItem(const Json& context, std::string_view bytes) {
  return Item(bytes, context["incarnation"], RegionOffset{context["location"].get<uint64_t>()});
}

Json DescribeSlot(Slot slot) {
  if (slot == kEmptySlot) return nullptr;
  return {{"tag", TagOf(slot)},
          {"item_bytes", ItemBytesOf(slot)},
          {"location", ToBytes(LocationOf(slot))}};
}

Json Header(const Json& context, std::string_view bytes, RegionOffset overflow) {
  const auto header = Take<BucketHeader>(bytes);
  if (!header) return Error("short");
  const uint64_t seed = HeaderSeed(context["incarnation"], context["shard"],
                                   BucketIndex{context["bucket"].get<uint32_t>()}, overflow);
  if (HeaderChecksum(*header, seed) != header->checksum) return Error("torn");
  Json slots = Json::array();
  for (const Slot slot : header->slots) slots.push_back(DescribeSlot(slot));
  return {{"version", header->version},
          {"chain_filter", ChainFilterOf(header->link)},
          {"depth", DepthOf(header->link)},
          {"overflow", ToBytes(OverflowOf(header->link))},
          {"slots", slots}};
}

Json DecodeBucket(const Json& context, std::string_view bytes) {
  Json content = Header(context, bytes, RegionOffset{0});
  if (content.contains("error")) return content;
  Json items = Json::array();
  const uint64_t at = context["offset"];
  for (size_t i = 0; i < content["slots"].size(); ++i) {
    const Json& slot = content["slots"][i];
    if (slot.is_null()) continue;
    const uint64_t location = slot["location"];
    const uint64_t length = slot["item_bytes"];
    if (location < at || location + length > at + bytes.size()) continue;
    Json item =
        Item(bytes.substr(location - at, length), context["incarnation"], RegionOffset{location});
    item["slot"] = i;
    items.push_back(item);
  }
  content["local_items"] = items;
  return content;
}

Json DecodeOverflow(const Json& context, std::string_view bytes) {
  return Header(context, bytes, RegionOffset{context["offset"].get<uint64_t>()});
}

Json DecodeRegionHead(const Json&, std::string_view bytes) {
  const auto superblock = Take<Superblock>(bytes);
  if (!superblock) return Error("short");
  const RegionIdentity& identity = superblock->identity;
  if (identity.magic != kSuperblockMagic) return Error("magic");
  if (Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic) !=
      identity.checksum) {
    return Error("torn");
  }
  const auto word = [&](CheckedWordKind kind, uint64_t place, uint64_t packed) {
    const auto value = UnpackCheckedWord(kind, place, identity.incarnation, packed);
    return value ? Json(*value) : Json(nullptr);
  };
  Json counts = Json::array();
  for (uint32_t shard = 0; shard < identity.shard_count; ++shard) {
    counts.push_back(word(CheckedWordKind::kBucketCount, shard, superblock->bucket_counts[shard]));
  }
  Json directory = Json::array();
  for (uint64_t i = 0; i < identity.directory_entries; ++i) {
    const auto entry =
        Take<uint64_t>(bytes.substr(identity.directory_offset + i * sizeof(uint64_t)));
    if (!entry) return Error("short");
    directory.push_back(word(CheckedWordKind::kDirectoryEntry, i, *entry));
  }
  return {{"layout_version", identity.layout_version},
          {"feature_bits", identity.feature_bits},
          {"incarnation", identity.incarnation},
          {"region_bytes", identity.region_bytes},
          {"bucket_bytes", identity.bucket_bytes},
          {"shard_count", identity.shard_count},
          {"directory_offset", identity.directory_offset},
          {"directory_entries", identity.directory_entries},
          {"segment_bytes", identity.segment_bytes},
          {"created_unix_us", identity.created_unix_us},
          {"lifeline", superblock->lifeline.word},
          {"bucket_counts", counts},
          {"directory", directory}};
}

Json DecodeHello(const Json&, std::string_view bytes) {
  Hello hello;
  if (const absl::Status status = ParseHello(Span(bytes), hello); !status.ok())
    return ErrorOf(status);
  return {{"version_min", hello.version_min},
          {"version_max", hello.version_max},
          {"feature_bits", hello.feature_bits},
          {"client_id", hello.client_id},
          {"credits_wanted", hello.credits_wanted},
          {"pid", hello.pid},
          {"name", Text(hello.name)}};
}

std::string Hex(std::span<const uint8_t> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Json DecodeChallenge(const Json&, std::string_view bytes) {
  Challenge challenge;
  if (const absl::Status status = ParseChallenge(Span(bytes), challenge); !status.ok())
    return ErrorOf(status);
  return {{"client_queue_pair", challenge.client_queue_pair},
          {"server_queue_pair", challenge.server_queue_pair},
          {"nonce", Hex(challenge.nonce)}};
}

template <typename Frame>
Frame FrameOf(const Json& context, const char* name) {
  const std::string bytes = absl::HexStringToBytes(context.at(name).get<std::string>());
  Frame frame{};
  std::memcpy(&frame, bytes.data(), std::min(bytes.size(), sizeof(frame)));
  return frame;
}

Json DecodeChallengeAnswer(const Json& context, std::string_view bytes) {
  Transcript said;
  if (const absl::Status status = ParseChallengeAnswer(Span(bytes), said.answer); !status.ok())
    return ErrorOf(status);
  const std::string transport = context.at("transport").get<std::string>();
  said.transport = transport;
  said.ends.client = FrameOf<ChannelEnd>(context, "client_end");
  said.ends.server = FrameOf<ChannelEnd>(context, "server_end");
  said.hello = FrameOf<Hello>(context, "hello");
  said.challenge = FrameOf<Challenge>(context, "challenge");
  const Proof proof = ClientProof(context.at("secret").get<std::string>(), said);
  return {{"key_name", std::string(KeyNameOf(said.answer))},
          {"nonce", Hex(said.answer.nonce)},
          {"proved", AreSame(proof, said.answer.proof)}};
}

Json DecodeWelcome(const Json&, std::string_view bytes) {
  Welcome welcome;
  const absl::Status status = ParseWelcome(Span(bytes), welcome);
  if (absl::IsUnavailable(status) &&
      welcome.status == static_cast<uint32_t>(WelcomeStatus::kFull)) {
    return {{"version", welcome.version},
            {"version_min", welcome.version_min},
            {"status", "full"},
            {"text", Text(welcome.text)}};
  }
  if (!status.ok()) return ErrorOf(status);
  return {{"version", welcome.version},
          {"version_min", welcome.version_min},
          {"status", "admitted"},
          {"feature_bits", welcome.feature_bits},
          {"incarnation", welcome.incarnation},
          {"region_bytes", welcome.region_bytes},
          {"region_address", welcome.region_address},
          {"region_key", welcome.region_key},
          {"bucket_bytes", welcome.bucket_bytes},
          {"shard_count", welcome.shard_count},
          {"directory_entries", welcome.directory_entries},
          {"directory_offset", welcome.directory_offset},
          {"session_id", welcome.session_id},
          {"credits", welcome.credits},
          {"frame_bytes", welcome.frame_bytes},
          {"max_value_bytes", welcome.max_value_bytes},
          {"replies_kept", (welcome.flags & kWelcomeRepliesKept) != 0},
          {"wants_hits", (welcome.flags & kWelcomeWantsHits) != 0},
          {"server_unix_us", welcome.server_unix_us},
          {"server_pid", welcome.server_pid},
          {"role", NameOf(static_cast<Role>(welcome.role))},
          {"proof", Hex(welcome.proof)},
          {"text", Text(welcome.text)}};
}

const char* NameOf(uint8_t opcode) {
  static constexpr const char* kNames[] = {"?",      "ping",      "get",    "put",     "delete",
                                           "exists", "stat",      "release", "increment", "append",
                                           "prepend", "touch",    "flush",  "hits", "sessions", "kick"};
  return opcode < std::size(kNames) ? kNames[opcode] : "?";
}

Json DecodeRequestFrame(const Json&, std::string_view bytes) {
  RequestView request;
  if (const FrameError error = DecodeRequest(Span(bytes), request); error != nullptr)
    return Error(error);
  const RequestHeader& header = request.header;
  Json content = {{"opcode", NameOf(header.opcode)},
                  {"request_id", header.request_id},
                  {"key", std::string(request.key)},
                  {"value_len", header.value_len}};
  if ((header.flags & kRequestPull) != 0) {
    content["pull_address"] = header.pull_address;
    content["pull_key"] = header.pull_key;
  } else {
    content["value"] = std::string(request.value);
  }
  if ((header.flags & kRequestExpiry) != 0) content["expiry_unix_us"] = header.expiry_unix_us;
  if ((header.flags & kRequestUserFlags) != 0) content["user_flags"] = header.user_flags;
  static constexpr std::pair<uint8_t, const char*> kFlags[] = {{kRequestRepeat, "repeat"},
                                                               {kRequestIfAbsent, "if_absent"},
                                                               {kRequestIfPresent, "if_present"},
                                                               {kRequestIfVersion, "if_version"},
                                                               {kRequestWithValue, "with_value"}};
  for (const auto& [flag, name] : kFlags) {
    if ((header.flags & flag) != 0) content[name] = true;
  }
  content["compare_version"] = header.compare_version;
  content["argument"] = header.argument;
  return content;
}

Json DecodeReplyFrame(const Json&, std::string_view bytes) {
  static constexpr const char* kStatuses[] = {
      "ok",          "not_found",     "condition_failed", "too_large",     "no_space", "malformed",
      "unsupported", "not_permitted", "pull_failed",      "shutting_down", "busy",     "internal",
      "not_number",  "overflow", "damaged"};
  ReplyView reply;
  if (const FrameError error = DecodeReply(Span(bytes), reply); error != nullptr)
    return Error(error);
  const ReplyHeader& header = reply.header;
  Json content = {{"opcode", NameOf(header.opcode)},
                  {"status", header.status < std::size(kStatuses) ? kStatuses[header.status] : "?"},
                  {"request_id", header.request_id},
                  {"inline", (header.flags & kReplyInline) != 0},
                  {"held", (header.flags & kReplyHeld) != 0},
                  {"error_text", (header.flags & kReplyErrorText) != 0}};
  if ((header.flags & kReplyUserFlags) != 0) content["user_flags"] = header.user_flags;
  content["version"] = header.version;
  if (header.slot != kEmptySlot) content["slot"] = DescribeSlot(header.slot);
  content["value_len"] = header.value_len;
  content["expiry_unix_us"] = header.expiry_unix_us;
  content["result"] = header.result;
  content["payload"] = std::string(reply.payload);
  return content;
}

Json DecodeSessionHeader(const Json&, std::string_view bytes) {
  const auto header = Take<SessionHeader>(bytes);
  if (!header) return Error("short");
  if (header->magic != kSessionMagic) return Error("magic");
  const SessionLayout layout = SessionLayout::Of(header->credits, header->frame_bytes);
  return {
      {"layout_version", header->layout_version},
      {"credits", header->credits},
      {"frame_bytes", header->frame_bytes},
      {"slot_bytes", header->slot_bytes},
      {"requests_offset", layout.requests_offset()},
      {"replies_offset", layout.replies_offset()},
      {"segment_bytes", layout.segment_bytes()},
      {"server_sleeping", header->server_sleeping},
      {"client_sleeping", header->client_sleeping},
      {"closed", header->closed},
      {"text", std::string(header->text, std::min<size_t>(header->text_bytes, kSessionTextBytes))}};
}

Json DecodeRingSlot(const Json&, std::string_view bytes) {
  const auto header = Take<SlotHeader>(bytes);
  if (!header || bytes.size() < sizeof(*header) + header->length_bytes) return Error("short");
  return {{"stamp", header->stamp},
          {"frame", std::string(bytes.substr(sizeof(*header), header->length_bytes))}};
}

Json DecodeSegmentNotice(const Json&, std::string_view bytes) {
  const auto notice = Take<SegmentNotice>(bytes);
  if (!notice) return Error("short");
  const char* action = notice->action == static_cast<uint32_t>(SegmentAction::kRegister)
                           ? "register"
                       : notice->action == static_cast<uint32_t>(SegmentAction::kForget) ? "forget"
                                                                                         : "?";
  return {{"action", action},
          {"segment_id", notice->segment_id},
          {"length_bytes", notice->length_bytes}};
}

}  // namespace

Json DecodeGolden(const std::string& kind, const Json& context, std::string_view bytes) {
  static constexpr struct {
    const char* kind;
    Json (*decode)(const Json& context, std::string_view bytes);
  } kDecoders[] = {
      {"item", DecodeItem},
      {"bucket", DecodeBucket},
      {"overflow_header", DecodeOverflow},
      {"region_head", DecodeRegionHead},
      {"hello", DecodeHello},
      {"challenge", DecodeChallenge},
      {"challenge_answer", DecodeChallengeAnswer},
      {"welcome", DecodeWelcome},
      {"request", DecodeRequestFrame},
      {"reply", DecodeReplyFrame},
      {"session_header", DecodeSessionHeader},
      {"ring_slot", DecodeRingSlot},
      {"segment_notice", DecodeSegmentNotice},
  };
  for (const auto& decoder : kDecoders) {
    if (kind == decoder.kind) return decoder.decode(context, bytes);
  }
  return Error("no decoder for kind " + kind);
}

}  // namespace kvd::test
