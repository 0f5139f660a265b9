"""An independent decoder of kvd's formats, written from docs/formats.md with Python's standard
library alone. Offsets stand here as plain numbers, so that they can be compared with the tables
there. A decoder raises Refused for bytes that a reader must not believe."""

import hashlib
import hmac
import struct

from xxh3 import MASK, xxh3_64


class Refused(Exception):
    pass


def need(condition, why):
    if not condition:
        raise Refused(why)


def u8(data, at):
    return data[at]


def u16(data, at):
    return struct.unpack_from("<H", data, at)[0]


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


def text(data, at, length):
    return data[at:at + length].split(b"\0")[0].decode("ascii")


def mix64(word):
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


# --- hash and place ---


def key_hash(key, incarnation):
    return xxh3_64(key, mix64(incarnation ^ 0x68617368))


def shard_of(hash_, shards):
    return (hash_ >> 48) * shards >> 16


def tag_of(hash_):
    return hash_ >> 36 & 0xFFF


def bucket_of(hash_, count):
    depth = (count - 1).bit_length()
    bucket = (hash_ & 0xFFFFFFFF) & (1 << depth) - 1
    if bucket >= count:
        bucket &= (1 << depth - 1) - 1
    return bucket


def size_of_code(code):
    exponent, mantissa = code >> 7, code & 127
    return 8 * (mantissa if exponent == 0 else 128 + mantissa << exponent - 1)


def code_of_size(size):
    """The smallest code that stands for at least `size` bytes: by trying, not by arithmetic."""
    return next(code for code in range(4096) if size_of_code(code) >= size)


# --- checked words ---

DIRECTORY_ENTRY, BUCKET_COUNT = 0x6469726563746F72, 0x6275636B6574636E


def checked_word(word, kind, place, incarnation):
    """The word's value, or None if it is not set."""
    if word == 0:
        return None
    value = word & 0xFFFFFFFF
    mixed = mix64(mix64(kind ^ incarnation) + (place << 32 | value) & MASK)
    need(word >> 32 == (mixed >> 32 | 0x80000000), "checked word")
    return value


# --- the region ---


def region_head(data, _):
    need(data[0:8] == b"KVDREGN1", "magic")
    need(u64(data, 88) == xxh3_64(data[0:88], u64(data, 0)), "checksum of the identity")
    need(not any(data[64:88]) and not any(data[96:128]), "reserved")
    need(not any(data[132:1024]) and not any(data[3072:4096]), "reserved")
    incarnation, shards = u64(data, 16), u32(data, 36)
    directory, entries = u64(data, 40), u32(data, 48)
    return {
        "layout_version": u32(data, 8),
        "feature_bits": u32(data, 12),
        "incarnation": incarnation,
        "region_bytes": u64(data, 24),
        "bucket_bytes": u32(data, 32),
        "shard_count": shards,
        "directory_offset": directory,
        "directory_entries": entries,
        "segment_bytes": u32(data, 52),
        "created_unix_us": u64(data, 56),
        "lifeline": u32(data, 128),
        "bucket_counts": [
            checked_word(u64(data, 1024 + 8 * i), BUCKET_COUNT, i, incarnation)
            for i in range(shards)
        ],
        "directory": [
            checked_word(u64(data, directory + 8 * i), DIRECTORY_ENTRY, i, incarnation)
            for i in range(entries)
        ],
    }


def slot(word):
    if word == 0:
        return None
    return {
        "tag": word >> 52,
        "item_bytes": size_of_code(word >> 40 & 0xFFF),
        "location": (word & (1 << 40) - 1) * 8,
    }


def header(data, context, overflow):
    seed = mix64(context["incarnation"] ^ mix64(context["shard"] << 32 | context["bucket"]))
    checksum = xxh3_64(data[4:144], seed + overflow & MASK) & 0xFFFFFFFF
    need(u32(data, 0) == checksum, "checksum of the header")
    link = u64(data, 8)
    need(overflow == 0 or link >> 48 == 0, "filter of an overflow header")
    return {
        "version": u32(data, 4),
        "chain_filter": link >> 48,
        "depth": link >> 40 & 0xFF,
        "overflow": (link & (1 << 40) - 1) * 8,
        "slots": [slot(u64(data, 16 + 8 * i)) for i in range(16)],
    }


def overflow_header(data, context):
    return header(data, context, context["offset"])


def bucket(data, context):
    result = header(data, context, 0)
    begin = context["offset"]
    result["local_items"] = []
    for number, place in enumerate(result["slots"]):
        if place is None:
            continue
        at = place["location"] - begin
        if at < 0 or at + place["item_bytes"] > len(data):
            continue
        here = {"incarnation": context["incarnation"], "location": place["location"]}
        found = item(data[at:at + place["item_bytes"]], here)
        hash_ = key_hash(found["key"].encode("ascii"), context["incarnation"])
        need(tag_of(hash_) == place["tag"], "tag of a local item")
        found["slot"] = number
        result["local_items"].append(found)
    return result


def item(data, context):
    need(len(data) >= 24, "length")
    word, second = u64(data, 0), u64(data, 8)
    version = word >> 2
    result = {"version": version}
    place = context["incarnation"] + context["location"] * 0x9E3779B97F4A7C15 & MASK
    place ^= version * 0xD6E8FEB86659FD93 & MASK
    if second & 127 != 0:
        at, key_len, value_len = 16, second & 127, second >> 7 & 511
        lengths = second & 0xFFFF
        place ^= lengths * 0xBF58476D1CE4E5B9 & MASK
    else:
        at, lengths = 24, None
        key_len, flags, value_len = u16(data, 16), u8(data, 18), u32(data, 20)
        need(1 <= key_len <= 4096, "key length")
        need(flags & ~7 == 0 and u8(data, 19) == 0, "flags or reserved")
        need(flags != 0 or key_len > 127 or value_len > 511, "long without need")
        need(at + 8 * bin(flags).count("1") <= len(data), "length")
        if flags & 1:
            result["expiry_unix_us"] = u64(data, at)
            at += 8
        if flags & 2:
            need(u64(data, at) >> 32 == 0, "upper half of the user flags")
            result["user_flags"] = u64(data, at)
            at += 8
        if flags & 4:
            need(value_len == 0, "short length beside a long one")
            value_len = u64(data, at)
            at += 8
    end = at + key_len + value_len
    padded = (end + 7) // 8 * 8
    need(padded <= len(data), "length")
    check = xxh3_64(data[16:padded], 0) ^ place ^ place >> 32
    if lengths is None:
        need(second == check << 7 & MASK, "check of the item")
    else:
        need(second == check << 16 & MASK | lengths, "check of the item")
    need(not any(data[end:padded]), "padding")
    need(word & 3 < 3, "state")
    result["state"] = ["dead", "writing", "live"][word & 3]
    result["key"] = data[at:at + key_len].decode("ascii")
    result["value"] = data[at + key_len:end].decode("ascii")
    return result


# --- handshake ---


def hello(data, _):
    need(len(data) == 64 and data[0:8] == b"KVDHELLO", "length or magic")
    need(u32(data, 12) == 0, "reserved")
    return {
        "version_min": u16(data, 8),
        "version_max": u16(data, 10),
        "feature_bits": u64(data, 16),
        "client_id": u64(data, 24),
        "credits_wanted": u32(data, 32),
        "pid": u32(data, 36),
        "name": text(data, 40, 24),
    }


def welcome(data, _):
    need(len(data) == 216 and data[0:8] == b"KVDWELCM", "length or magic")
    need(u32(data, 180) == 0, "reserved")
    status = u32(data, 12)
    result = {
        "version": u16(data, 8),
        "version_min": u16(data, 10),
        "status": ["admitted", "wrong_version", "malformed", "full", "not_admitted",
                   "shutting_down", "internal", "too_late"][status],
        "text": text(data, 112, 64),
    }
    if status != 0:
        need(not any(data[16:112]) and not any(data[176:]), "a refusal says nothing of the region")
        return result
    need(u32(data, 108) & ~3 == 0, "unknown flag")
    result.update({
        "replies_kept": bool(u32(data, 108) & 1),
        "wants_hits": bool(u32(data, 108) & 2),
        "feature_bits": u64(data, 16),
        "incarnation": u64(data, 24),
        "region_bytes": u64(data, 32),
        "region_address": u64(data, 40),
        "region_key": u32(data, 48),
        "bucket_bytes": u32(data, 52),
        "shard_count": u32(data, 56),
        "directory_entries": u32(data, 60),
        "directory_offset": u64(data, 64),
        "session_id": u64(data, 72),
        "credits": u32(data, 80),
        "frame_bytes": u32(data, 84),
        "max_value_bytes": u64(data, 88),
        "server_unix_us": u64(data, 96),
        "server_pid": u32(data, 104),
        "role": ["?", "read", "read-write", "admin"][u32(data, 176)],
        "proof": data[184:216].hex(),
    })
    return result


def challenge(data, _):
    need(len(data) == 64 and data[0:8] == b"KVDCHALL", "length or magic")
    need(u32(data, 8) == 0 and u32(data, 20) == 0 and u64(data, 56) == 0, "reserved")
    return {
        "client_queue_pair": u32(data, 12),
        "server_queue_pair": u32(data, 16),
        "nonce": data[24:56].hex(),
    }


# The proof is worked out anew, from the frames before it and the secret that the context tells.
def challenge_answer(data, context):
    need(len(data) == 128 and data[0:8] == b"KVDCANSW", "length or magic")
    need(u64(data, 8) == 0 and not any(data[112:]), "reserved")
    said = b"kvd client 2".ljust(16, b"\0") + context["transport"].encode("ascii").ljust(16, b"\0")
    said += bytes.fromhex(context["client_end"]) + bytes.fromhex(context["server_end"])
    said += bytes.fromhex(context["hello"]) + bytes.fromhex(context["challenge"])
    said += data[:80] + bytes(32) + data[112:]
    proof = hmac.new(context["secret"].encode("ascii"), said, hashlib.sha256).digest()
    return {
        "key_name": text(data, 16, 32),
        "nonce": data[48:80].hex(),
        "proved": hmac.compare_digest(proof, data[80:112]),
    }


# --- requests and replies ---

OPCODES = ["?", "ping", "get", "put", "delete", "exists", "stat", "release", "increment", "append",
           "prepend", "touch", "flush", "hits", "sessions", "kick"]
STATUSES = ["ok", "not_found", "condition_failed", "too_large", "no_space", "malformed",
            "unsupported", "not_permitted", "pull_failed", "shutting_down", "busy", "internal",
            "not_number", "overflow", "damaged"]


def request(data, _):
    flags, key_len, value_len = u8(data, 1), u16(data, 2), u64(data, 16)
    need(u32(data, 60) == 0 and u64(data, 8) != 0, "header")
    result = {
        "opcode": OPCODES[u8(data, 0)],
        "request_id": u64(data, 8),
        "key": data[64:64 + key_len].decode("ascii"),
        "value_len": value_len,
        "compare_version": u64(data, 24),
        "argument": u64(data, 40),
    }
    if flags & 1:
        need(len(data) == 64 + key_len, "length")
        result["pull_address"] = u64(data, 48)
        result["pull_key"] = u32(data, 56)
    else:
        need(len(data) == 64 + key_len + value_len, "length")
        result["value"] = data[64 + key_len:].decode("ascii")
    if flags & 2:
        result["expiry_unix_us"] = u64(data, 32)
    if flags & 4:
        result["user_flags"] = u32(data, 4)
    for bit, name in ((8, "repeat"), (16, "if_absent"), (32, "if_present"), (64, "if_version"),
                      (128, "with_value")):
        if flags & bit:
            result[name] = True
    need(bool(flags & 64) == (u64(data, 24) != 0), "version to compare")
    return result


def reply(data, _):
    flags, value_len, place = u8(data, 1), u64(data, 32), slot(u64(data, 24))
    result = {
        "opcode": OPCODES[u8(data, 0)],
        "status": STATUSES[u16(data, 2)],
        "request_id": u64(data, 8),
        "inline": bool(flags & 1),
        "held": bool(flags & 2),
        "error_text": bool(flags & 8),
        "version": u64(data, 16),
        "value_len": value_len,
        "expiry_unix_us": u64(data, 40),
        "result": u64(data, 48),
        "payload": data[56:].decode("ascii"),
    }
    need(not flags & 1 or value_len == len(data) - 56, "length of an inline value")
    if flags & 4:
        result["user_flags"] = u32(data, 4)
    if place is not None:
        result["slot"] = place
    return result


# --- sessions over shared memory ---


def session_header(data, _):
    need(len(data) == 448 and data[0:8] == b"KVDSESS1", "length or magic")
    need(not any(data[24:64]) and not any(data[68:128]) and not any(data[132:192]), "reserved")
    credits, frame_bytes, slot_bytes = u32(data, 12), u32(data, 16), u32(data, 20)
    lines = (8 + frame_bytes + 63) // 64
    need(slot_bytes == 64 * (lines if lines % 2 == 1 else lines + 1), "bytes of a slot")
    ring = credits * slot_bytes
    return {
        "layout_version": u32(data, 8),
        "credits": credits,
        "frame_bytes": frame_bytes,
        "slot_bytes": slot_bytes,
        "requests_offset": 4096,
        "replies_offset": 4096 + ring,
        "segment_bytes": (4096 + 2 * ring + 4095) // 4096 * 4096,
        "server_sleeping": u32(data, 64),
        "client_sleeping": u32(data, 128),
        "closed": u32(data, 192),
        "text": data[200:200 + u32(data, 196)].decode("ascii"),
    }


def ring_slot(data, _):
    return {"stamp": u32(data, 0), "frame": data[8:8 + u32(data, 4)].decode("ascii")}


def segment_notice(data, _):
    need(len(data) == 16, "length")
    return {
        "action": ["?", "register", "forget"][u32(data, 0)],
        "segment_id": u32(data, 4),
        "length_bytes": u64(data, 8),
    }


DECODERS = {
    function.__name__: function
    for function in (region_head, bucket, overflow_header, item, hello, challenge, challenge_answer,
                     welcome, request, reply,
                     session_header, ring_slot, segment_notice)
}
