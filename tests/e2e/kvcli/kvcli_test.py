#!/usr/bin/env python3
"""kvcli_test.py KVD KVCLI: what people and scripts see of kvcli, with a real kvd behind it."""

import json
import os
import re
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (TIMEOUT_S, Kvcli, Server, Skipped, check, check_equal, run_cases,  # noqa: E402
                     seeded_random)
from prompt import Prompt, run_on_terminal  # noqa: E402

KVD, KVCLI_BINARY = (os.path.abspath(path) for path in sys.argv[1:3])
RANDOM = seeded_random()
SERVER = Server(KVD, "--memory=64m", "--max_value=4m", "--hugepages=off")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)


def kvcli_of(server):
    return Kvcli(KVCLI_BINARY, server.target)


ALL_BYTES = bytes(range(256))
UNICODE_DATA = "/usr/share/unicode/UnicodeData.txt"


def clear():
    for line in KVCLI.ok("scan", "--hex").split():
        KVCLI.ok("del", "--hex", line.decode())


def values_are_exact():
    """kvcli: put and get keep every byte, by argument, standard input and file"""
    values = {
        "empty": b"", "all": ALL_BYTES, "newlines": b"\n\na\r\n\n", "nul": b"\0",
        "dash": b"-", "inline": b"x" * 1000, "large": RANDOM.randbytes(1_000_000),
        "odd": RANDOM.randbytes(4097),
    }
    for key, value in values.items():
        path = SERVER.path("value")
        with open(path, "wb") as file:
            file.write(value)
        check_equal(KVCLI.ok("put", key, "-", stdin=value), b"OK\n")
        check_equal(KVCLI.ok("get", key), value, key, "from a pipe")
        KVCLI.ok("del", key)
        with open(path, "rb") as file:
            KVCLI.ok("put", key, stdin=file)
        check_equal(KVCLI.ok("get", key), value, key, "from a redirection")
        KVCLI.ok("put", key, "gone")
        KVCLI.ok("put", key, "@" + path)
        check_equal(KVCLI.ok("get", key), value, key, "from @FILE")
        KVCLI.ok("put", "--hex", key.encode().hex(), value[:1000].hex())
        check_equal(KVCLI.ok("get", key), value[:1000], key, "as hexadecimal")
    KVCLI.ok("put", "--literal", "at", "@x")
    check_equal(KVCLI.ok("get", "at"), b"@x")
    KVCLI.ok("put", "--hex", "00ff0a", "61")
    check_equal(KVCLI.ok("get", "--hex", "00ff0a"), b"61\n")
    clear()


def exit_codes():
    """kvcli: each kind of failure has its exit status, and one line on standard error"""
    KVCLI.ok("put", "there", "v")
    nobody = "shm:" + SERVER.path("nobody")
    os.makedirs(SERVER.path("closed"), exist_ok=True)
    for expected, arguments in [
            (1, ("get", "none")), (1, ("del", "none")), (1, ("mget", "there", "none")),
            (2, ("get",)), (2, ("gte", "x")), (2, ("get", "x", "--nonsense")),
            (2, ("get", "")), (2, ("get", "k" * 5000)), (7, ("put", "k", "@/no/such")),
            (2, ("get", "k", "--server=nowhere")), (7, ("load", "/no/such")),
            (3, ("get", "k", "--server=" + nobody)), (3, ("ping", "--server=" + nobody)),
            (7, ("dump", "/no/such/directory/file"))]:
        result = KVCLI.run(*arguments)
        check_equal(result.exit, expected, arguments, result.err)
        check(result.err.startswith("kvcli: ") and result.err.count("\n") == 1 and
              "; " in result.err, arguments, result.err)
    check_equal(KVCLI.run("exists", "there", "none").exit, 1)
    result = KVCLI.run("put", "big", "-", stdin=bytes(5 << 20))
    check_equal(result.exit, 5, result.err)
    check("--max_value" in result.err, result.err)
    clear()


def key_files():
    """kvcli: whatever is wrong with its own key file is a usage error with a remedy; what the server refuses is not"""
    files = {"good": "key app read " + "ab" * 16, "line": "nonsense", "empty": "", "open": "key app read " + "ab" * 16,
             "wrong": "key app read " + "cd" * 16}
    for name, text in files.items():
        files[name] = SERVER.path(name + ".client.keys")
        with open(os.open(files[name], os.O_WRONLY | os.O_CREAT, 0o644 if name == "open" else 0o600), "w",
                  encoding="ascii") as file:
            file.write(text + "\n")
    server = Server(KVD, "--memory=64m", "--hugepages=off", "--keys=" + files["good"])
    kvcli = kvcli_of(server)
    try:
        server.start(kvcli)
        for expected, name, more in ((2, "line", "line 1: must begin with key"), (2, "empty", "add a line"),
                                     (2, "open", "chmod 600"), (2, "none", "make one"), (5, "wrong", "wrong secret")):
            result = kvcli.run("get", "k", "--key_file=" + files.get(name, SERVER.path("none.client.keys")))
            check_equal(result.exit, expected, name, result.err)
            check(more in result.err and "; " in result.err and "--server" not in result.err, result.err)
        check_equal(kvcli.run("get", "k", "--key_file=" + files["good"]).exit, 1)
        check_equal(kvcli.run("get", "k", "--key_file=" + files["good"], "--key_name=other").exit, 2)
    finally:
        server.close()


def a_full_region():
    """kvcli: a region that is full refuses with 5; load goes on counting, and says why once"""
    items = b"".join(b"k%d\t%s\n" % (i, b"x" * 1_000_000) for i in range(80))
    result = KVCLI.run("load", "-", "-w", "json", stdin=items)
    check_equal(result.exit, 5, result.err)
    counts = json.loads(result.out)
    check_equal(counts["items"] + counts["refused"], 80)
    check(counts["refused"] > 1 and counts["items"] > 20, counts)
    check_equal(len(result.err.splitlines()), 2, result.err)
    check(f"{counts['refused']} lines were refused" in result.err and
          "--evict=none" in result.err and "; delete something" in result.err, result.err)
    check_equal(KVCLI.ok("get", "k0"), b"x" * 1_000_000)
    clear()


def a_full_server():
    """kvcli: stat, info and ping reach a server that has all the clients that it takes; get does not"""
    server = Server(KVD, "--memory=64m", "--hugepages=off", "--max_clients=1")
    kvcli = kvcli_of(server)
    prompts = []
    try:
        server.start(kvcli)
        holder = kvcli.start(stdin=subprocess.PIPE)
        holder.stdin.write(b"put k v\n")
        holder.stdin.flush()
        check_equal(holder.stdout.readline(), b"OK\n")
        result = kvcli.run("get", "k")
        check_equal(result.exit, 5, result.err)
        check("--max_clients=1" in result.err, result.err)
        kvcli.ok("ping")
        kvcli.ok("info")
        statistics = json.loads(kvcli.ok("stat", "-w", "json"))
        check(statistics["sessions"] >= 2 and statistics["sessions_max"] == 1, statistics)
        # In a list of commands, too, such a session is for nothing else; the list goes on.
        result = kvcli.run(stdin=b"ping\nget k\ninfo\n")
        check_equal(result.exit, 5, result.err)
        check(b"PONG" in result.out and b"sessions" in result.out, result.out)
        check_equal(result.err.count("\n"), 1, result.err)
        # Nobody keeps such a session while nothing is asked: these are as many as there are.
        for _ in range(2):
            prompts.append(Prompt(kvcli, KVCLI_HISTORY=""))
            prompts[-1].expect("(not connected)> ")
            prompts[-1].send("stat --all\n")
            prompts[-1].expect("sessions_max")
            prompts[-1].expect(f"kvd {server.target}> ")
        # kvd learns of a session's end a moment after it.
        deadline = time.monotonic() + TIMEOUT_S
        while kvcli.run("info").exit != 0:
            check(time.monotonic() < deadline, "forgotten prompts lock info out")
        _, err = holder.communicate(b"get k\n", timeout=TIMEOUT_S)
        check_equal(holder.returncode, 0, err)
    finally:
        for prompt in prompts:
            prompt.close()
        server.close()


def no_answer_in_time():
    """kvcli: a server that does not answer is exit status 4, within the deadline"""
    SERVER.process.send_signal(signal.SIGSTOP)
    # The signal goes to one thread, which stops the others once it runs.
    os.waitid(os.P_PID, SERVER.process.pid, os.WSTOPPED | os.WNOWAIT)
    try:
        result = KVCLI.run("ping", "--deadline=200ms")
        check_equal(result.exit, 4, result.err)
    finally:
        SERVER.process.send_signal(signal.SIGCONT)
    KVCLI.ok("ping")


def load_and_dump_round_trip():
    """kvcli: what dump writes, load reads back byte for byte, in either format"""
    items = {b"k" + bytes([i]): RANDOM.randbytes(i * 20) for i in range(256)}
    items[b"text"] = "gr\u00fc\u00dfe \u4e16\u754c".encode()
    items[b"\xef\xbb\xbf{"] = b"mark"
    items[b"empty"] = b""
    lines = "".join(json.dumps({"key_hex": key.hex(), "value_hex": value.hex()}) + "\n"
                    for key, value in items.items())
    KVCLI.ok("load", "-", stdin=lines.encode())
    for name in ("dump.tsv", "dump.jsonl"):
        path = SERVER.path(name)
        result = KVCLI.run("dump", path)
        check_equal(result.exit, 0, result.err)
        check(f"{len(items)} items" in result.err, result.err)
        with open(path, "rb") as file:
            check_equal(sorted(KVCLI.ok("dump", "--format=" + name[5:]).splitlines()),
                        sorted(file.read().splitlines()), name)
        clear()
        KVCLI.ok("load", path)
        for key, value in list(items.items())[::17]:
            check_equal(KVCLI.ok("get", "--hex", key.hex()), (value.hex() + "\n").encode(), name)
        check_equal(len(KVCLI.ok("scan", "--hex").split()), len(items), name)
    dumped = KVCLI.start("dump")
    piped = KVCLI.run("load", "-", stdin=dumped.stdout)
    dumped.stdout.close()
    check_equal((dumped.wait(TIMEOUT_S), piped.exit), (0, 0), piped.err)
    dumped.stderr.close()
    clear()


def memory_of_a_load():
    """kvcli: a load takes as many times the memory of its longest line as help says"""
    if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
        raise Skipped("a sanitizer takes memory of its own")
    server = Server(KVD, "--memory=256m", "--hugepages=off")
    kvcli = kvcli_of(server)
    try:
        server.start(kvcli)
        for times, name, begin, end in (
                (2, "long.tsv", b"k\t", b""), (3, "long.jsonl", b'{"key":"k","value":"', b'"}'),
                (4, "base64.jsonl", b'{"key":"k","value_base64":"', b'"}')):
            path = server.path(name)
            with open(path, "wb") as file:
                file.write(begin)
                for _ in range(60):
                    file.write(b"eHh4" * 250_000)
                file.write(end)
            # Run by a small process: what its parent had at the most counts for a new process too.
            run = ("import os, sys\n"
                   "_, status, usage = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)\n"
                   "print(status, usage.ru_maxrss << 10)\n")
            done = subprocess.run([sys.executable, "-c", run, KVCLI_BINARY, "load", path, "--deadline=60s"],
                                  env=kvcli.environment(), capture_output=True, timeout=TIMEOUT_S, check=True)
            status, memory = map(int, done.stdout.split())
            check_equal(status, 0, done.stderr)
            check(memory < times * os.path.getsize(path) + (32 << 20), name, memory)
    finally:
        server.close()


def unicode_data():
    """kvcli: the Unicode character database, keyed by code point"""
    if not os.path.exists(UNICODE_DATA):
        raise Skipped(f"no {UNICODE_DATA}; install unicode-data")
    with open(UNICODE_DATA, encoding="ascii") as file:
        records = dict(line.rstrip("\n").split(";", 1) for line in file)
    result = KVCLI.run("load", UNICODE_DATA, "--format=delimited", "--separator=;")
    check_equal(result.exit, 0, result.err)
    check(f"{len(records)} items" in result.err, result.err)
    dumped = {}
    for line in KVCLI.ok("dump").splitlines():
        item = json.loads(line)
        dumped[item["key"]] = item["value"]
    check(dumped == records, "the dump differs from", UNICODE_DATA)
    keys = RANDOM.sample(sorted(records), 200)
    check_equal(KVCLI.ok("mget", *keys).decode().splitlines(), [records[key] for key in keys])
    KVCLI.run(stdin="".join(f"del {key}\n" for key in records).encode())


def bad_lines():
    """kvcli: load tells each bad line by its number and loads the rest"""
    result = KVCLI.run("load", "-", stdin=b"a\t1\r\nbad\n\nb\t\\q\n\t1\nc\t3")
    check_equal(result.exit, 2)
    for line in (2, 4, 5):
        check(f"kvcli: load -: line {line}: " in result.err, result.err)
    check_equal(KVCLI.ok("mget", "a", "c"), b"1\n3\n")
    clear()


def json_output():
    """kvcli: -w json is JSON, whatever is in keys and values"""
    KVCLI.ok("put", "k\"\\\n\u00e9", "v\x01\u4e16")
    KVCLI.ok("put", "--hex", "ff00", "fe")
    item = json.loads(KVCLI.ok("get", "k\"\\\n\u00e9", "-w", "json"))
    check_equal((item["key"], item["value"]), ("k\"\\\n\u00e9", "v\x01\u4e16"))
    item = json.loads(KVCLI.ok("get", "--hex", "ff00", "-w", "json"))
    check_equal((item["key_hex"], item["value_hex"]), ("ff00", "fe"))
    check(int(item["version"]) > 0, item)
    found = [json.loads(line) for line in KVCLI.ok("scan", "-w", "json").splitlines()]
    check_equal(sorted(item.get("key_base64", "") for item in found), ["", "/wA="])
    lines = KVCLI.run("mget", "none", "k\"\\\n\u00e9", "-w", "json").out.splitlines()
    check_equal(json.loads(lines[0]), {"key": "none", "value": None})
    check_equal(json.loads(lines[1])["value"], "v\x01\u4e16")
    statistics = json.loads(KVCLI.ok("stat", "-w", "json"))
    check_equal(statistics["items"], 2)
    check_equal(statistics["pid"], SERVER.process.pid)
    ping = json.loads(KVCLI.ok("ping", "-c", "10", "-w", "json"))
    check(0 < ping["min_us"] <= ping["avg_us"] <= ping["max_us"], ping)
    check("memory_bytes" in json.loads(KVCLI.ok("info", "-w", "json")))
    clear()


def commands_from_standard_input():
    """kvcli: commands from a pipe, and the first failure's exit status"""
    result = KVCLI.run(stdin=b"put a 'x y'\nget a\nget none\ngte\nput b \"\\x00\\xff\"\nexists a b")
    check_equal(result.exit, 1, result.err)
    check_equal(result.out, b"OK\nx y\nOK\n2\n")
    check("kvcli: line 3: get none: " in result.err and "kvcli: line 4: gte: " in result.err,
          result.err)
    check_equal(KVCLI.ok("get", "b"), b"\0\xff")
    clear()


def output_errors():
    """kvcli: a full disk is an error, a reader that is gone is none to speak of"""
    KVCLI.ok("load", "-", stdin=b"".join(b"k%d\t%s\n" % (i, b"v" * 500) for i in range(2000)))
    for arguments in (("get", "k1"), ("dump",), ("scan",), ("stat",), ("help",)):
        with open("/dev/full", "wb") as full:
            result = KVCLI.run(*arguments, stdout=full)
        check_equal(result.exit, 7, arguments)
        check("No space left on device" in result.err, result.err)
    check_equal(KVCLI.run("dump", "/dev/full").exit, 7)
    process = KVCLI.start("dump")
    check(process.stdout.readline().startswith(b"{"))
    process.stdout.close()
    check_equal(process.wait(TIMEOUT_S), 141)
    check_equal(process.stderr.read(), b"")
    process.stderr.close()
    closed = subprocess.run(["/bin/sh", "-c", '"$0" get k1 >&-', KVCLI_BINARY],
                            env=KVCLI.environment(), stderr=subprocess.PIPE, check=False)
    check_equal(closed.returncode, 7, closed.stderr)

    path = SERVER.path("limited")
    with open(path, "w", encoding="ascii") as file:
        file.write("old")

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    limited = subprocess.run([KVCLI_BINARY, "dump", path], env=KVCLI.environment(),
                             stderr=subprocess.PIPE, preexec_fn=small_files, check=False)
    check_equal(limited.returncode, 7, limited.stderr)
    with open(path, encoding="ascii") as file:
        check_equal(file.read(), "old")
    check(not [name for name in os.listdir(SERVER.directory) if name.startswith("limited.")])
    clear()


def version_of(key):
    return int(json.loads(KVCLI.ok("get", key, "-w", "json"))["version"])


def conditions():
    """kvcli: a write happens if its condition holds; otherwise it says the version that is there"""
    KVCLI.ok("put", "k", "1", "--if=absent")
    result = KVCLI.run("put", "k", "2", "--if=absent")
    check_equal(result.exit, 1, result.err)
    check(f"version {version_of('k')}" in result.err, result.err)
    first = version_of("k")
    KVCLI.ok("cas", "k", str(first), "2")
    result = KVCLI.run("cas", "k", str(first), "3")
    check_equal(result.exit, 1)
    check(f"version {version_of('k')}" in result.err and result.err.count("\n") == 1, result.err)
    check_equal(KVCLI.ok("get", "k"), b"2")
    check_equal(KVCLI.run("put", "none", "v", "--if=present").exit, 1)
    check_equal(KVCLI.run("cas", "none", "7", "v").exit, 1)
    check_equal(KVCLI.run("del", "k", f"--if=version:{first}").exit, 1)
    check_equal(KVCLI.ok("del", "k", f"--if=version:{version_of('k')}"), b"1\n")
    check_equal(KVCLI.run("exists", "k", "none").out, b"0\n")


def numbers_and_pieces():
    """kvcli: incr, decr, append and prepend"""
    check_equal(KVCLI.ok("incr", "n"), b"1\n")
    check_equal(KVCLI.ok("incr", "n", "41"), b"42\n")
    check_equal(KVCLI.ok("decr", "n", "50"), b"-8\n")
    check_equal(KVCLI.ok("incr", "n", "-2"), b"-10\n")
    KVCLI.ok("put", "n", "9223372036854775807")
    result = KVCLI.run("incr", "n")
    check_equal(result.exit, 5, result.err)
    KVCLI.ok("put", "n", "ten")
    result = KVCLI.run("incr", "n")
    check_equal(result.exit, 5, result.err)
    check_equal(KVCLI.ok("get", "n"), b"ten")
    KVCLI.ok("append", "p", "-", stdin=ALL_BYTES)
    KVCLI.ok("prepend", "p", "<")
    KVCLI.ok("append", "p", ">", "--if=present")
    check_equal(KVCLI.ok("get", "p"), b"<" + ALL_BYTES + b">")
    check_equal(KVCLI.run("append", "none", "x", "--if=present").exit, 1)
    clear()


def expiry():
    """kvcli: items with a time to live, and what ttl says of them"""
    KVCLI.ok("put", "k", "v", "--ttl=1h", "--flags=7")
    check(3500 < int(KVCLI.ok("ttl", "k")) <= 3600)
    item = json.loads(KVCLI.ok("get", "k", "-w", "json"))
    check_equal(item["user_flags"], 7)
    KVCLI.ok("touch", "k", "--ttl=2d")
    check(3600 < int(KVCLI.ok("ttl", "k")) <= 2 * 86400)
    check_equal(KVCLI.ok("get", "k", "--touch"), b"v")
    check_equal(KVCLI.ok("ttl", "k"), b"-1\n")
    KVCLI.ok("put", "k", "v", "--expire_at=2100-01-01T00:00:00Z")
    check_equal(json.loads(KVCLI.ok("ttl", "k", "-w", "json"))["expiry_unix_us"],
                4102444800000000)
    KVCLI.ok("put", "k", "v", "--expire_at=1000000000")  # long ago
    for arguments in (("get", "k"), ("ttl", "k"), ("touch", "k")):
        check_equal(KVCLI.run(*arguments).exit, 1, arguments)
    KVCLI.ok("put", "k", "v", "--ttl=1us")
    while KVCLI.run("get", "k").exit == 0:
        pass
    check_equal(KVCLI.ok("put", "k", "v", "--if=absent"), b"OK\n")
    clear()


def scan_in_parts():
    """kvcli: the parts of a scan are together every key, once"""
    KVCLI.ok("load", "-", stdin=b"".join(b"p:%d\t\nq:%d\t\n" % (i, i) for i in range(3000)))
    cursor, seen, parts = "", [], 0
    while parts == 0 or cursor:
        lines = [json.loads(line) for line in KVCLI.ok(
            "scan", "--prefix=p:", "--limit=500", "--cursor=" + cursor, "-w", "json").splitlines()]
        cursor = lines.pop()["cursor"]
        seen += [line["key"] for line in lines]
        parts += 1
    check_equal(sorted(seen), sorted(f"p:{i}" for i in range(3000)))
    check(3 < parts < 10, parts)
    check_equal(len(KVCLI.ok("scan", "--limit=7").split()), 7)
    check_equal(KVCLI.run("scan", "--cursor=nonsense").exit, 2)
    result = KVCLI.run("scan", "--cursor=", "--limit=10")
    check("go on with --cursor=" in result.err, result.err)
    other = Server(KVD, "--memory=16m", "--hugepages=off")
    try:
        other.start(kvcli_of(other))
        stale = result.err.strip().rsplit("--cursor=", 1)[1]
        check_equal(kvcli_of(other).run("scan", "--cursor=" + stale).exit, 5)
    finally:
        other.close()
    check_equal(KVCLI.ok("flush", "--prefix=q:", "--yes"), b"3000\n")
    check_equal(len(KVCLI.ok("scan").split()), 3000)
    check_equal(KVCLI.run("flush").exit, 2)
    check_equal(KVCLI.ok("flush", "--yes"), b"3000\n")
    check_equal(KVCLI.ok("scan"), b"")


def flush_asks():
    """kvcli: flush asks on a terminal, at the prompt too"""
    KVCLI.ok("put", "k", "v")
    for answer, exit_status, left in (("n\n", 2, b"1\n"), ("y\n", 0, b"0\n")):
        asked = Prompt(KVCLI, "flush")
        try:
            asked.expect("[y/N] ")
            asked.send(answer)
            check_equal(asked.rest()[1], exit_status)
        finally:
            asked.close()
        check_equal(KVCLI.run("exists", "k").out, left)
    KVCLI.ok("put", "k", "v")
    prompt = Prompt(KVCLI, KVCLI_HISTORY="")
    try:
        prompt.expect("> ")
        prompt.send("flush --prefix=k\n")
        prompt.expect("[y/N] ")
        prompt.send("y\n")
        prompt.expect("\r\n1\r\n")
        prompt.expect("> ")
        prompt.send("exit\n")
        check_equal(prompt.rest()[1], 0)
    finally:
        prompt.close()
    check_equal(KVCLI.run("exists", "k").exit, 1)


def big_keys():
    """kvcli: --bigkeys counts values by size"""
    KVCLI.ok("load", "-", stdin=b"".join(b"s%d\tx\n" % i for i in range(100)))
    KVCLI.ok("put", "big", "-", stdin=bytes(2_000_000))
    counts = json.loads(KVCLI.ok("--bigkeys", "-w", "json"))
    check_equal((counts["items"], counts["value_bytes"]), (101, 2_000_100))
    check_equal([each["largest_key"] for each in counts["classes"]][1:], ["big"])
    check(b"| big" in KVCLI.ok("bigkeys"))
    clear()


def rates():
    """kvcli: --stat prints a line for each interval, with rates of what kvd did"""
    lines = KVCLI.ok("-i", "0.05", "--stat", "-c", "3").decode().splitlines()
    check_equal(lines[0].split()[:3], ["items", "memory", "sessions"])
    check_equal(len(lines), 4)
    line = json.loads(KVCLI.ok("stat", "--rates", "-c2", "-i50ms", "-w", "json").splitlines()[1])
    check(line["requests_per_second"] > 0, line)  # its own


def stat_screen():
    """kvcli: stat on a terminal is one screen, every name with --all"""
    shown, exit_status = run_on_terminal(KVCLI, "stat")
    check_equal(exit_status, 0)
    check(b"requests" in shown and b"largest_free_run_bytes" not in shown, shown)
    check(shown.count(b"\n") <= 24, shown)
    shown, _ = run_on_terminal(KVCLI, "stat", "--all")
    check(b"largest_free_run_bytes" in shown, shown)


def latency():
    """kvcli: --latency samples GETs and requests; on a terminal until Ctrl-C"""
    KVCLI.ok("put", "k", "v")
    sampled = json.loads(KVCLI.ok("--latency", "-i", "0.1", "-w", "json"))
    check(sampled["samples"] > 0, sampled)
    for times in (sampled["get_us"], sampled["request_us"]):
        check(0 < times["min"] <= times["avg"] <= times["max"], sampled)
    check_equal(len(KVCLI.ok("--latency-history", "-i", "0.02", "-c", "2").splitlines()), 2)
    prompt = Prompt(KVCLI, "--latency")
    try:
        prompt.expect("samples)")
        prompt.interrupt()
        shown, exit_status = prompt.rest()
        check_equal(exit_status, 130, shown)
        check(shown.rstrip().endswith(b"samples)"), shown)
    finally:
        prompt.close()
    clear()


def watch():
    """kvcli: watch prints what changes, and costs kvd no request"""
    KVCLI.ok("put", "n", "0")
    watching = KVCLI.start("watch", "n", "--interval=1ms", "--count=3", "-w", "json")
    by_prefix = KVCLI.start("watch", "--prefix=n", "--interval=1ms", "--count=3", "-w", "json")
    # Whichever look is the first one: changes go on until both have seen enough.
    while watching.poll() is None or by_prefix.poll() is None:
        KVCLI.ok("incr", "n")
    for process in (watching, by_prefix):
        out, err = process.communicate(timeout=TIMEOUT_S)
        check_equal(process.returncode, 0, err)
        events = [json.loads(line) for line in out.splitlines()]
        check_equal([event["event"] for event in events], ["PUT"] * 3)
        values = [int(event["value"]) for event in events]
        check_equal(values, sorted(set(values)))
    check_equal(json.loads(KVCLI.ok("stat", "-w", "json"))["requests_get"], 0)
    prompt = Prompt(KVCLI, "watch", "n", "--interval=1ms")
    try:
        while b"PUT" not in prompt.seen:
            KVCLI.ok("incr", "n")
            prompt.fill(time.monotonic() + 0.01)
        KVCLI.ok("del", "n")
        prompt.expect("DELETE\r\nn\r\n")
        prompt.interrupt()
        check_equal(prompt.rest()[1], 130)
    finally:
        prompt.close()
    clear()


def watch_of_a_key_that_is_revoked():
    """kvcli: watch goes on after a kick while its key is good, and reads nothing more once that is revoked"""
    keys = {name: f"key {name} {role} {digits * 16}\n"
            for name, role, digits in (("watcher", "read", "ab"), ("boss", "admin", "cd"))}
    files = {}
    for name in ("kvd", *keys):
        files[name] = SERVER.path(name + ".watch.keys")
        with open(os.open(files[name], os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write("".join(keys.values()) if name == "kvd" else keys[name])
    server = Server(KVD, "--memory=64m", "--hugepages=off", "--keys=" + files["kvd"],
                    "--audit=" + SERVER.path("watch.audit"))
    boss = Kvcli(KVCLI_BINARY, server.target)
    try:
        server.start(boss)
        watching = boss.start("--key_file=" + files["watcher"], "watch", "n", "--interval=1ms", "-w", "json")

        def sees_changes():
            least = last = int(boss.ok("--key_file=" + files["boss"], "incr", "n"))
            seen = 0
            while seen < least:
                while not select.select([watching.stdout], [], [], 0)[0] and seen < last:
                    last = int(boss.ok("--key_file=" + files["boss"], "incr", "n"))
                seen = int(json.loads(watching.stdout.readline())["value"])
        sees_changes()
        check_equal(boss.ok("--key_file=" + files["boss"], "admin", "kick", "key:watcher"), b"1\n")
        sees_changes()
        with open(files["kvd"], "w", encoding="utf-8") as file:
            file.write(keys["boss"])
        server.process.send_signal(signal.SIGHUP)
        while '"reloaded"' not in open(SERVER.path("watch.audit"), encoding="utf-8").read():
            pass
        boss.ok("--key_file=" + files["boss"], "put", "n", "not-for-the-watcher")
        out, err = watching.communicate(timeout=TIMEOUT_S)
        check_equal(watching.returncode, 5, err)
        check(b"unknown key or wrong secret" in err, err)
        check(b"not-for-the-watcher" not in out, out)
    finally:
        server.close()


def bundle():
    """kvcli: bundle holds what helps, for its owner alone, and none of what is private"""
    secret = RANDOM.randbytes(32).hex()
    value = "value-" + RANDOM.randbytes(16).hex()
    key = "item-" + RANDOM.randbytes(16).hex()
    keys = SERVER.path("bundle.keys")
    with open(keys, "w", encoding="utf-8") as file:
        os.chmod(keys, 0o600)
        file.write(f"key keyname admin {secret}\n")
    server = Server(KVD, "--memory=64m", "--hugepages=off", "--keys", keys)
    kvcli = kvcli_of(server)
    environment = {"KVCLI_KEY_FILE": keys, "KVCLI_PREFIX": key, "UNRELATED": value}
    try:
        server.start(kvcli)
        kvcli.ok("put", key, value, **environment)
        path = server.path("bundle.txt")
        listed = kvcli.ok("bundle", path, "--perf", **environment).decode()
        check_equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for section in ("about", "doctor", "doctor --perf", "stat", "socket", "kernel", "memory",
                        "kvd's command line", "kvd's limits", "kvd's threads", "devices and port counters",
                        "environment"):
            check(f"== {section} ==" in text and section in listed, section, listed)
        check("GET, cold" in text and "MemTotal" in text and "--memory=64m" in text, text)
        check("KVCLI_KEY_FILE is set" in text and "KVCLI_PREFIX is set" in text, text)
        check("KVCLI_SERVER=" + server.target in text, text)
        for private in (secret, value, key, keys, "bundle.keys", "keyname", "UNRELATED"):
            check(private not in text and private not in listed, "the bundle tells", private)
        again = kvcli.run("bundle", path, **environment)
        check_equal(again.exit, 7, again.err)
        check("is there already" in again.err, again.err)
        link = server.path("link.txt")
        os.symlink(server.path("elsewhere"), link)
        check_equal(kvcli.run("bundle", link).exit, 7)
        check(not os.path.exists(server.path("elsewhere")))
        # Of one that does not answer, everything but what it alone can say.
        server.process.send_signal(signal.SIGSTOP)
        stopped = kvcli.ok("bundle", "-", "--deadline=1s", "--perf", **environment).decode()
        server.process.send_signal(signal.SIGCONT)
        check("--memory=64m" in stopped and "T (stopped)" in stopped and "kvd-poller-0" in stopped, stopped)
        missing = re.findall(r"^== (.*) ==\nmissing: ", stopped, re.MULTILINE)
        check_equal(missing, ["stat", "doctor --perf"])
        for private in (secret, value, key, keys, "bundle.keys", "keyname"):
            check(private not in stopped, "the bundle tells", private)
        sections = re.findall(r"^== (.*) ==$", stopped, re.MULTILINE)
        check_equal(sections, re.findall(r"^== (.*) ==$", text, re.MULTILINE))
        # Neither does what is wrong with a key name it.
        for wrong, mode in (({"KVCLI_KEY_NAME": "othername"}, 0o600), ({}, 0o640)):
            os.chmod(keys, mode)
            told = kvcli.ok("bundle", "-", "--deadline=1s", **environment, **wrong).decode()
            check("(not shown)" in told, told)
            for private in (secret, keys, "bundle.keys", "othername", "keyname"):
                check(private not in told, "the bundle tells", private)
        os.chmod(keys, 0o600)
        server.stop()
        # What cannot be had is said, and the rest is there.
        gone = kvcli.ok("bundle", "-", "--deadline=1s", "--perf").decode()
        check_equal(re.findall(r"^== (.*) ==$", gone, re.MULTILINE), sections)
        check_equal(re.findall(r"^== (.*) ==\nmissing: ", gone, re.MULTILINE),
                    ["stat", "kvd's command line", "kvd's limits", "kvd's threads", "doctor --perf"])
    finally:
        server.close()


def traits_round_trip():
    """kvcli: dump and load carry expiry and user flags, by prefix; of one key the last line counts"""
    KVCLI.ok("put", "a:1", "v", "--ttl=1d", "--flags=4294967295")
    KVCLI.ok("put", "a:2", "v")
    KVCLI.ok("put", "b", "v")
    before = KVCLI.ok("get", "a:1", "-w", "json")
    for name in ("part.tsv", "part.jsonl"):
        path = SERVER.path(name)
        KVCLI.ok("dump", "--prefix=a:", path)
        clear()
        KVCLI.ok("load", path)
        after = KVCLI.ok("get", "a:1", "-w", "json")
        for field in ("expiry_unix_us", "user_flags", "value"):
            check_equal(json.loads(after)[field], json.loads(before)[field], name)
        check_equal(sorted(KVCLI.ok("scan").split()), [b"a:1", b"a:2"])
    KVCLI.ok("load", "-", stdin=b"".join(b"same\t%d\n" % i for i in range(2000)))
    check_equal(KVCLI.ok("get", "same"), b"1999")
    past = b'{"key":"a:2","value":"old","expiry_unix_us":1000}\n'
    result = KVCLI.run("load", "-", "-w", "json", stdin=past)
    check_equal((result.exit, json.loads(result.out)["expired"]), (0, 1), result.err)
    check_equal(KVCLI.ok("get", "a:2"), b"v")
    clear()


def load_without_a_server():
    """kvcli: a load whose server is gone says at which line it stopped, and exits with 3"""
    server = Server(KVD, "--memory=16m", "--hugepages=off")
    kvcli = kvcli_of(server)
    reading, writing = os.pipe()
    try:
        server.start(kvcli)
        process = kvcli.start("load", "-", "--deadline=500ms", stdin=reading)
        os.close(reading)
        os.write(writing, b"a\t1\n")
        while kvcli.run("exists", "a").exit != 0:
            check(process.poll() is None, "load ended")
        server.stop()
        os.write(writing, b"b\t2\nc\t3\n")
        _, err = process.communicate(timeout=TIMEOUT_S)
        check_equal(process.returncode, 3, err)
        check(b"load -: stopped at line 2: " in err and b": 1 item (2 B)" in err, err)
    finally:
        os.close(writing)
        server.close()


def interrupted_load():
    """kvcli: Ctrl-C ends a load with a summary and 130"""
    reading, writing = os.pipe()
    process = KVCLI.start("load", "-", stdin=reading)
    os.close(reading)
    os.write(writing, b"a\t1\n")
    while KVCLI.run("exists", "a").exit != 0:  # until it reads
        check(process.poll() is None, "load ended")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)
    os.close(writing)
    check_equal(process.returncode, 130, err)
    check(b"interrupted after line 1\n" in err and b": 1 item (2 B)" in err, err)
    clear()


def the_prompt():
    """kvcli: the prompt edits, completes, forgives, remembers, and ends"""
    history = SERVER.path("history")
    ready = f"kvd {SERVER.target}> "
    prompt = Prompt(KVCLI, KVCLI_HISTORY=history)
    try:
        prompt.expect("exit, quit or Ctrl-D leaves")
        prompt.expect(ready)
        prompt.send("put k 'a b'\n")
        prompt.expect("OK\r\n")
        prompt.expect(ready)
        prompt.send("ge\t k\n")  # completed
        prompt.expect("a b\r\n")
        prompt.expect(ready)
        prompt.send("get \"k\n")
        prompt.expect("the double quote is not closed at byte 5")
        prompt.expect(ready)
        prompt.send("put k never\x03")  # Ctrl-C
        prompt.expect("^C")
        prompt.expect(ready)
        prompt.send("get none\n")
        prompt.expect("get none: not found")
        prompt.expect(ready)
        prompt.send("put u gr\u00fc\u00dfe\n")
        prompt.expect("OK\r\n")
        prompt.expect(ready)
        prompt.send("get u\n")
        prompt.expect("gr\u00fc\u00dfe\r\n")
        prompt.expect(ready)
        prompt.send("put esc \"\\x1b[2J\"\n")
        prompt.expect("OK\r\n")
        prompt.expect(ready)
        prompt.send("get esc\n")
        prompt.expect("\\x1b[2J\r\n")
        prompt.expect(ready)
        prompt.send("help put\n")
        prompt.expect("put: store a value")
        prompt.expect(ready)
        prompt.interrupt()  # from elsewhere: nothing to end
        prompt.send("mget k none\n")
        prompt.expect("(nil)")
        prompt.expect(ready)
        prompt.send("\x04")  # Ctrl-D
        shown, exit_status = prompt.rest()
        check_equal(exit_status, 0, shown)
    finally:
        prompt.close()
    check_equal(KVCLI.ok("get", "k"), b"a b")
    check_equal(stat.S_IMODE(os.stat(history).st_mode), 0o600)
    with open(history, encoding="utf-8") as file:
        kept = file.read()
    check("put" in kept and "never" not in kept, kept)

    pipe = SERVER.path("pipe")
    os.mkfifo(pipe, 0o640)
    elsewhere = Prompt(KVCLI, KVCLI_HISTORY=pipe)
    try:
        elsewhere.expect(ready)
        elsewhere.send("exists k\n")
        elsewhere.expect("\r\n1\r\n")
        elsewhere.expect(ready)
        elsewhere.send("exit\n")
        check_equal(elsewhere.rest()[1], 0)
    finally:
        elsewhere.close()
    check_equal(stat.S_IMODE(os.stat(pipe).st_mode), 0o640)

    again = Prompt(KVCLI, KVCLI_HISTORY=history)
    try:
        again.expect(ready)
        again.send("\x10\x10\n")  # Ctrl-P twice: what was typed before the last line
        again.expect("put: store a value")
        again.expect(ready)
        again.send("quit\n")
        check_equal(again.rest()[1], 0)
    finally:
        again.close()
    clear()


def on_a_terminal():
    """kvcli: a terminal gets a newline, colour where it is wanted, and a prompt without a server"""
    KVCLI.ok("put", "k", "v")
    check_equal(run_on_terminal(KVCLI, "get", "k"), (b"v\r\n", 0))
    KVCLI.ok("del", "k")
    for environment, colour in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        process = Prompt(KVCLI, "get", "none", **environment)
        try:
            raw = b""
            while True:
                try:
                    more = os.read(process.master, 65536)
                except OSError:
                    break
                raw += more
            check_equal(b"\x1b[31m" in raw, colour, environment, raw)
            check_equal(process.process.wait(TIMEOUT_S), 1)
        finally:
            process.close()
    alone = Prompt(Kvcli(KVCLI_BINARY, "shm:" + SERVER.path("nobody")), KVCLI_HISTORY="")
    try:
        alone.expect("cannot connect")
        alone.expect("kvd (not connected)> ")
        alone.send("\x04")
        check_equal(alone.rest()[1], 0)
    finally:
        alone.close()


def a_server_that_comes_back():
    """kvcli: the prompt lives through a restart of kvd"""
    ready = f"kvd {SERVER.target}> "
    prompt = Prompt(KVCLI, KVCLI_HISTORY="")
    try:
        prompt.expect(ready)
        prompt.send("put k v\n")
        prompt.expect("OK\r\n")
        SERVER.stop()
        prompt.expect(ready)
        prompt.send("get k\n")
        prompt.expect("get k: ")
        prompt.expect(ready)
        SERVER.start(KVCLI)
        prompt.send("exists k\n")
        # The first try after a pause may still report the loss; it must not take many.
        for _ in range(50):
            shown = prompt.expect(ready)
            if b"\r\n0\r\n" in shown:
                break
            prompt.send("exists k\n")
        else:
            check(False, "never connected again")
    finally:
        prompt.close()


def a_server_that_is_starting():
    """kvcli: a command right after the start of kvd waits for it; a relative path will do"""
    server = Server(KVD, "--memory=16m", "--hugepages=off")
    try:
        server.process = subprocess.Popen(server.command, stdin=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL)
        for target, arguments, out in (("kvd.sock", ("put", "k", "v"), b"OK\n"),
                                       ("shm:kvd.sock", ("get", "k"), b"v")):
            done = subprocess.run([KVCLI_BINARY, *arguments], cwd=server.directory,
                                  env=Kvcli(KVCLI_BINARY, target).environment(),
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=TIMEOUT_S, check=False)
            check_equal(done.stdout, out, done.stderr)
    finally:
        server.close()


def completion_scripts():
    """kvcli: the completion script completes in bash"""
    script = KVCLI.ok("completion", "bash").decode()
    program = script + """
complete_at() {
  COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
  _kvcli; echo "${COMPREPLY[@]}"
}
complete_at kvcli ge
complete_at kvcli help ver
complete_at kvcli put k --li
complete_at kvcli load x --format = j
complete_at kvcli -w ta
complete_at kvcli completion z
complete_at kvcli put k v --ttl
complete_at kvcli put k v --if = v
complete_at kvcli big
"""
    out = subprocess.run(["bash", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         timeout=TIMEOUT_S, check=False)
    check_equal(out.stdout.decode().splitlines(),
                ["get", "version", "--literal", "jsonl", "table", "zsh", "--ttl=", "version:",
                 "bigkeys"], out.stderr)


def completion_script_for_zsh():
    """kvcli: zsh understands the completion script"""
    if shutil.which("zsh") is None:
        raise Skipped("no zsh")
    path = SERVER.path("_kvcli")
    with open(path, "wb") as file:
        file.write(KVCLI.ok("completion", "zsh"))
    done = subprocess.run(["zsh", "-n", path], stderr=subprocess.PIPE, timeout=TIMEOUT_S,
                          check=False)
    check_equal((done.returncode, done.stderr), (0, b""))


def main():
    SERVER.start(KVCLI)
    try:
        run_cases([values_are_exact, exit_codes, key_files, a_full_region, a_full_server, no_answer_in_time,
                   load_and_dump_round_trip, memory_of_a_load, unicode_data, bad_lines, json_output,
                   conditions, numbers_and_pieces, expiry,
                   scan_in_parts, flush_asks, big_keys, rates, stat_screen, latency, watch,
                   watch_of_a_key_that_is_revoked, bundle,
                   traits_round_trip,
                   load_without_a_server,
                   commands_from_standard_input, output_errors, interrupted_load, the_prompt,
                   on_a_terminal, completion_scripts, completion_script_for_zsh,
                   a_server_that_comes_back, a_server_that_is_starting])
    finally:
        SERVER.close()


main()
