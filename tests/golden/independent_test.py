"""Decodes the golden files with kvd_formats.py and compares with the JSON beside them. Prints a
line for each file, as tests/run.sh wants them."""

import json
import pathlib
import sys
import traceback

import kvd_formats
from xxh3 import xxh3_64

DIRECTORY = pathlib.Path(__file__).resolve().parent
failures = 0


def case(name, check):
    global failures
    try:
        check()
        print(f"KVD_CASE passed independent decoder: {name}")
    except Exception:
        failures += 1
        traceback.print_exc()
        print(f"KVD_CASE failed independent decoder: {name}", flush=True)


def equal(found, expected, what=""):
    assert found == expected, f"{what}\nfound    {found}\nexpected {expected}"


def decodes(path):
    expected = json.loads(path.read_text())
    decode = kvd_formats.DECODERS[expected["kind"]]
    data = path.with_suffix(".bin").read_bytes()
    equal(decode(data, expected["context"]), expected["content"])


def refuses_flipped_bits(path):
    """The decoder looks at the checksums, and they cover every bit but the two of an item's state."""
    expected = json.loads(path.read_text())
    decode = kvd_formats.DECODERS[expected["kind"]]
    data = path.with_suffix(".bin").read_bytes()
    for bit in range(2 if expected["kind"] == "item" else 0, 8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        try:
            decode(bytes(flipped), expected["context"])
        except (kvd_formats.Refused, UnicodeDecodeError):
            continue
        raise AssertionError(f"bit {bit} does not matter")


def vectors_match():
    vectors = json.loads((DIRECTORY / "vectors.json").read_text())
    pattern = bytes(i * 131 + (i >> 8) * 7 + 1 & 255 for i in range(5000))
    for vector in vectors["checksums"]:
        equal(xxh3_64(pattern[:vector["length"]], vector["seed"]), vector["xxh3_64"], vector)
    for vector in vectors["mix64"]:
        equal(kvd_formats.mix64(vector["word"]), vector["mix64"], vector)
    for vector in vectors["sizes"]:
        equal(kvd_formats.code_of_size(vector["bytes"]), vector["code"], vector)
        equal(kvd_formats.size_of_code(vector["code"]), vector["occupied"], vector)
    for vector in vectors["keys"]:
        hash_ = kvd_formats.key_hash(vector["key"].encode("ascii"), vector["incarnation"])
        equal(hash_, vector["hash"], vector)
        equal(kvd_formats.tag_of(hash_), vector["tag"], vector)
        for field, expected in vector.items():
            if field.startswith("shard_of_"):
                equal(kvd_formats.shard_of(hash_, int(field[9:])), expected, vector)
            if field.startswith("bucket_of_"):
                equal(kvd_formats.bucket_of(hash_, int(field[10:])), expected, vector)


def main():
    files = sorted(path for path in DIRECTORY.glob("*.json") if path.name != "vectors.json")
    case("there are files of every kind", lambda: equal(
        {json.loads(path.read_text())["kind"] for path in files}, set(kvd_formats.DECODERS)))
    case("vectors of checksums, hashes and sizes", vectors_match)
    for path in files:
        case(path.stem, lambda: decodes(path))
    for name in ("item_smallest", "item_all_words", "item_400", "item_key_128", "overflow_header"):
        case(f"{name} with a flipped bit is refused",
             lambda: refuses_flipped_bits(DIRECTORY / f"{name}.json"))
    return 1 if failures else 0


sys.exit(main())
