// The first frames of a session, before anything of the region is known to the client.
//
//   client -> server   Hello (64)
//   server -> client   Challenge (64), where the client is to prove that it has a key
//   client -> server   ChallengeAnswer (128)
//   server -> client   Welcome (216): admitted, with the region's geometry; or refused: `status` and a text
//
// Hello and Welcome carry magic and protocol version first and never change in their first 16 bytes, so any two versions can at
// least refuse each other with a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kvd {

inline constexpr uint64_t kHelloMagic = 0x4f4c4c454844564b;    // the bytes "KVDHELLO"
inline constexpr uint64_t kWelcomeMagic = 0x4d434c455744564b;  // the bytes "KVDWELCM"
inline constexpr uint64_t kChallengeMagic = 0x4c4c41484344564b;        // the bytes "KVDCHALL"
inline constexpr uint64_t kChallengeAnswerMagic = 0x57534e414344564b;  // the bytes "KVDCANSW"
inline constexpr uint16_t kProtocolVersion = 5;

// Hello::feature_bits, and Welcome's where it holds. The client is here to look after the server, for a moment: where all
// ordinary sessions are taken, it asks for one of the few that are kept for local administration.
inline constexpr uint64_t kFeatureAdministration = 1;
// Hello only. The client has a key: it answers a Challenge, and goes on with nobody who has not proved to have the key as well.
inline constexpr uint64_t kFeatureKey = 2;
// Both. The client counts what it reads, and the server takes these counts in front of a HITS.
inline constexpr uint64_t kFeatureCounts = 4;

// What a session may do; each role may do what those before it may.
enum class Role : uint32_t {
  kNone = 0,
  kRead = 1,
  kReadWrite = 2,
  kAdmin = 3,  // look at others' sessions and end them
};

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;    // HMAC-SHA256
inline constexpr size_t kKeyNameBytes = 32;  // with at least one zero at the end

struct Hello {
  uint64_t magic;
  uint16_t version_min;  // the client speaks version_min..version_max
  uint16_t version_max;
  uint32_t reserved0;    // zero
  uint64_t feature_bits;
  uint64_t client_id;      // random, never zero; the same across reconnects of one client object
  uint32_t credits_wanted;
  uint32_t pid;            // for logs only
  char name[24];           // for logs only; NUL-padded printable ASCII
};

enum class WelcomeStatus : uint32_t {
  kAdmitted = 0,
  kWrongVersion = 1,
  kMalformed = 2,
  kFull = 3,         // --max_clients reached
  kNotAdmitted = 4,  // not permitted
  kShuttingDown = 5,
  kInternal = 6,
  kTooLate = 7,      // the hello did not arrive in time
};

// common/admission/proof.h says what the proofs are over.
struct Challenge {
  uint64_t magic;
  uint32_t reserved0;  // zero
  uint32_t client_queue_pair;  // the numbers of the connection's queue pairs, as the server sees them: an answer that was
  uint32_t server_queue_pair;  // meant for another connection is good for nothing; zero over shared memory
  uint32_t reserved1;          // zero
  uint8_t nonce[kNonceBytes];
  uint64_t reserved2;  // zero
};

struct ChallengeAnswer {
  uint64_t magic;
  uint64_t reserved0;  // zero
  char key_name[kKeyNameBytes];  // NUL-padded
  uint8_t nonce[kNonceBytes];
  uint8_t proof[kProofBytes];
  uint8_t reserved1[16];  // zero
};

// Welcome::flags. The server still has the replies to everything that this client id sent in earlier sessions with this
// incarnation: what was not answered may be sent again (kRequestRepeat) and takes effect once.
inline constexpr uint32_t kWelcomeRepliesKept = 1;
// The server evicts, and wants to know what is read one-sidedly: HITS.
inline constexpr uint32_t kWelcomeWantsHits = 2;

struct Welcome {
  uint64_t magic;
  uint16_t version;      // spoken in this session; the server's own when it refuses
  uint16_t version_min;  // lowest the server speaks
  uint32_t status;       // WelcomeStatus
  uint64_t feature_bits;
  uint64_t incarnation;
  uint64_t region_bytes;
  uint64_t region_address;  // remote address; zero over shared memory
  uint32_t region_key;      // rkey; zero over shared memory
  uint32_t bucket_bytes;
  uint32_t shard_count;
  uint32_t directory_entries;
  uint64_t directory_offset;
  uint64_t session_id;
  uint32_t credits;      // requests that may be outstanding
  uint32_t frame_bytes;  // longest frame either way
  uint64_t max_value_bytes;
  uint64_t server_unix_us;
  uint32_t server_pid;
  uint32_t flags;        // kWelcome..., below
  char text[64];         // why the session was refused; NUL-padded
  uint32_t role;         // Role of the session
  uint32_t reserved0;    // zero
  uint8_t proof[kProofBytes];  // that the server has the key; zero where none was asked for
};

static_assert(std::is_standard_layout_v<Hello> && std::has_unique_object_representations_v<Hello>);
static_assert(sizeof(Hello) == 64 && alignof(Hello) == 8);
static_assert(offsetof(Hello, magic) == 0);
static_assert(offsetof(Hello, version_min) == 8);
static_assert(offsetof(Hello, version_max) == 10);
static_assert(offsetof(Hello, reserved0) == 12);
static_assert(offsetof(Hello, feature_bits) == 16);
static_assert(offsetof(Hello, client_id) == 24);
static_assert(offsetof(Hello, credits_wanted) == 32);
static_assert(offsetof(Hello, pid) == 36);
static_assert(offsetof(Hello, name) == 40);

static_assert(std::is_standard_layout_v<Welcome> && std::has_unique_object_representations_v<Welcome>);
static_assert(sizeof(Welcome) == 216 && alignof(Welcome) == 8);
static_assert(offsetof(Welcome, magic) == 0);
static_assert(offsetof(Welcome, version) == 8);
static_assert(offsetof(Welcome, version_min) == 10);
static_assert(offsetof(Welcome, status) == 12);
static_assert(offsetof(Welcome, feature_bits) == 16);
static_assert(offsetof(Welcome, incarnation) == 24);
static_assert(offsetof(Welcome, region_bytes) == 32);
static_assert(offsetof(Welcome, region_address) == 40);
static_assert(offsetof(Welcome, region_key) == 48);
static_assert(offsetof(Welcome, bucket_bytes) == 52);
static_assert(offsetof(Welcome, shard_count) == 56);
static_assert(offsetof(Welcome, directory_entries) == 60);
static_assert(offsetof(Welcome, directory_offset) == 64);
static_assert(offsetof(Welcome, session_id) == 72);
static_assert(offsetof(Welcome, credits) == 80);
static_assert(offsetof(Welcome, frame_bytes) == 84);
static_assert(offsetof(Welcome, max_value_bytes) == 88);
static_assert(offsetof(Welcome, server_unix_us) == 96);
static_assert(offsetof(Welcome, server_pid) == 104);
static_assert(offsetof(Welcome, flags) == 108);
static_assert(offsetof(Welcome, text) == 112);
static_assert(offsetof(Welcome, role) == 176);
static_assert(offsetof(Welcome, reserved0) == 180);
static_assert(offsetof(Welcome, proof) == 184);

static_assert(std::is_standard_layout_v<Challenge> && std::has_unique_object_representations_v<Challenge>);
static_assert(sizeof(Challenge) == 64 && alignof(Challenge) == 8);
static_assert(offsetof(Challenge, reserved0) == 8);
static_assert(offsetof(Challenge, client_queue_pair) == 12);
static_assert(offsetof(Challenge, server_queue_pair) == 16);
static_assert(offsetof(Challenge, reserved1) == 20);
static_assert(offsetof(Challenge, nonce) == 24);
static_assert(offsetof(Challenge, reserved2) == 56);

static_assert(std::is_standard_layout_v<ChallengeAnswer> && std::has_unique_object_representations_v<ChallengeAnswer>);
static_assert(sizeof(ChallengeAnswer) == 128 && alignof(ChallengeAnswer) == 8);
static_assert(offsetof(ChallengeAnswer, reserved0) == 8);
static_assert(offsetof(ChallengeAnswer, key_name) == 16);
static_assert(offsetof(ChallengeAnswer, nonce) == 48);
static_assert(offsetof(ChallengeAnswer, proof) == 80);
static_assert(offsetof(ChallengeAnswer, reserved1) == 112);

}  // namespace kvd
