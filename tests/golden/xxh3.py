"""XXH3-64 with a seed, in plain Python, from the published specification of the algorithm
(xxHash, doc/xxhash_spec.md). Slow, and meant to be: it shares nothing with what it checks."""

MASK = (1 << 64) - 1

P32_1, P32_2, P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
P64_1, P64_2, P64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P64_4, P64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MX1, MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")
assert len(SECRET) == 192


def read32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def read64(data, at):
    return int.from_bytes(data[at:at + 8], "little")


def swap64(word):
    return int.from_bytes(word.to_bytes(8, "little"), "big")


def rotate(word, bits):
    return (word << bits | word >> (64 - bits)) & MASK


def fold(a, b):
    """The two halves of the 128-bit product, combined."""
    product = a * b
    return (product & MASK) ^ (product >> 64)


def avalanche_xxh64(h):
    h = (h ^ h >> 33) * P64_2 & MASK
    h = (h ^ h >> 29) * P64_3 & MASK
    return h ^ h >> 32


def avalanche(h):
    h = (h ^ h >> 37) * MX1 & MASK
    return h ^ h >> 32


def mix16(data, at, secret_at, seed):
    return fold(read64(data, at) ^ (read64(SECRET, secret_at) + seed & MASK),
                read64(data, at + 8) ^ (read64(SECRET, secret_at + 8) - seed & MASK))


def up_to_16(data, seed):
    n = len(data)
    if n > 8:
        low = read64(data, 0) ^ ((read64(SECRET, 24) ^ read64(SECRET, 32)) + seed & MASK)
        high = read64(data, n - 8) ^ ((read64(SECRET, 40) ^ read64(SECRET, 48)) - seed & MASK)
        return avalanche(n + swap64(low) + high + fold(low, high) & MASK)
    if n >= 4:
        seed ^= int.from_bytes((seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
        word = read32(data, n - 4) + (read32(data, 0) << 32)
        h = word ^ ((read64(SECRET, 8) ^ read64(SECRET, 16)) - seed & MASK)
        h ^= rotate(h, 49) ^ rotate(h, 24)
        h = h * MX2 & MASK
        h = (h ^ (h >> 35) + n) * MX2 & MASK
        return h ^ h >> 28
    if n > 0:
        word = data[0] << 16 | data[n >> 1] << 24 | data[n - 1] | n << 8
        return avalanche_xxh64(word ^ ((read32(SECRET, 0) ^ read32(SECRET, 4)) + seed & MASK))
    return avalanche_xxh64(seed ^ read64(SECRET, 56) ^ read64(SECRET, 64))


def up_to_128(data, seed):
    n = len(data)
    acc = n * P64_1
    for pair in range((n - 1) // 32, -1, -1):
        acc += mix16(data, 16 * pair, 32 * pair, seed)
        acc += mix16(data, n - 16 * (pair + 1), 32 * pair + 16, seed)
    return avalanche(acc & MASK)


def up_to_240(data, seed):
    n = len(data)
    acc = n * P64_1 + sum(mix16(data, 16 * i, 16 * i, seed) for i in range(8))
    acc = avalanche(acc & MASK)
    for i in range(8, n // 16):
        acc += mix16(data, 16 * i, 16 * (i - 8) + 3, seed)
    acc += mix16(data, n - 16, 136 - 17, seed)
    return avalanche(acc & MASK)


def long(data, seed):
    n = len(data)
    secret = b"".join(
        (read64(SECRET, at) + seed & MASK).to_bytes(8, "little") +
        (read64(SECRET, at + 8) - seed & MASK).to_bytes(8, "little")
        for at in range(0, 192, 16))
    acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1]

    def accumulate(at, secret_at):
        for i in range(8):
            word = read64(data, at + 8 * i)
            key = word ^ read64(secret, secret_at + 8 * i)
            acc[i ^ 1] = acc[i ^ 1] + word & MASK
            acc[i] = acc[i] + (key & 0xFFFFFFFF) * (key >> 32) & MASK

    blocks = (n - 1) // 1024
    for block in range(blocks):
        for stripe in range(16):
            accumulate(1024 * block + 64 * stripe, 8 * stripe)
        for i in range(8):
            word = acc[i] ^ acc[i] >> 47 ^ read64(secret, 128 + 8 * i)
            acc[i] = word * P32_1 & MASK
    for stripe in range((n - 1 - 1024 * blocks) // 64):
        accumulate(1024 * blocks + 64 * stripe, 8 * stripe)
    accumulate(n - 64, 192 - 64 - 7)
    result = n * P64_1
    for i in range(4):
        result += fold(acc[2 * i] ^ read64(secret, 11 + 16 * i),
                       acc[2 * i + 1] ^ read64(secret, 11 + 16 * i + 8))
    return avalanche(result & MASK)


def xxh3_64(data, seed=0):
    if len(data) <= 16:
        return up_to_16(data, seed)
    if len(data) <= 128:
        return up_to_128(data, seed)
    if len(data) <= 240:
        return up_to_240(data, seed)
    return long(data, seed)
