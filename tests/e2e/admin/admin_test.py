#!/usr/bin/env python3
"""admin_test.py KVD KVCLI: kvd's admin endpoint, for those who mean well and those who do not."""

import json
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "kvcli")]
from harness import (Kvcli, Server, TIMEOUT_S, check, check_equal, run_cases,  # noqa: E402
                     seeded_random)
from http_peer import ask, connect, get, port_in, read_all  # noqa: E402

KVD, KVCLI_BINARY = (os.path.abspath(path) for path in sys.argv[1:])
SERVER = Server(KVD, "--memory=256m", "--hugepages=off", "--admin=0", "--pollers=2")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)


def port():
    return port_in(SERVER.log())


def run_kvd(*flags):
    done = subprocess.run([KVD, "--shm=" + SERVER.path("other.sock"), "--hugepages=off", *flags],
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stderr.decode()


def probes():
    """Probes: alive and ready, by GET and HEAD; other methods and paths are refused"""
    for path in ("/livez", "/readyz"):
        check_equal((get(port(), path).status, get(port(), path).text), (200, "ok\n"))
        check_equal((get(port(), path, "HEAD").status, get(port(), path, "HEAD").body), (200, b""))
    refused = get(port(), "/livez", "POST")
    check_equal((refused.status, refused.headers["allow"]), (405, "GET, HEAD"))
    check_equal(get(port(), "/nothing").status, 404)
    check_equal(get(port(), "/livez?a=b").status, 200)


def status():
    """/status.json and /: say what kvcli stat says, and who is connected"""
    KVCLI.ok("put", "key-nobody-may-see", "value-nobody-may-see")
    stat = json.loads(KVCLI.ok("-w", "json", "stat"))
    reply = get(port(), "/status.json")
    check_equal(reply.headers["content-type"], "application/json")
    shown = json.loads(reply.text)
    check_equal(sorted(shown["statistics"]), sorted(stat))
    for name in ("items", "memory_bytes", "incarnation", "version", "requests_put", "page_kind"):
        check_equal(shown["statistics"][name], stat[name], name)
    page = get(port(), "/")
    check_equal(page.headers["content-type"], "text/html; charset=utf-8")
    check("unsafe" not in page.headers["content-security-policy"], "inline scripts may run")
    check("script-src 'self'; connect-src 'self';" in page.headers["content-security-policy"],
          page.headers)
    check("default-src 'none'" in page.headers["content-security-policy"], page.headers)
    for text in (reply.text, page.text):
        check("nobody-may-see" not in text, "items are shown")


def sessions():
    """/status.json, / and /metrics: say who is connected, with name, transport, role and key"""
    keys = SERVER.path("kvd.keys")
    with open(os.open(keys, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write("key app read-write " + "5a" * 32 + "\n")
    server = Server(KVD, "--memory=64m", "--hugepages=off", "--admin=0", "--keys=" + keys)
    client = Kvcli(KVCLI_BINARY, server.target)
    try:
        server.start(client)
        number = port_in(server.log())
        # A command that goes on for as long as its input does.
        load = client.start("--key_file=" + keys, "load", "-", stdin=subprocess.PIPE)
        load.stdin.write(b"a\tb\n" * 100_000)
        load.stdin.flush()
        while not (rows := json.loads(get(number, "/status.json").text)["sessions"]):
            check(load.poll() is None, "kvcli ended")  # ends by the test's own time limit
        row = rows[0]
        check_equal((len(rows), row["transport"], row["key"], row["role"]),
                    (1, "shm", "app", "read-write"))
        check(server.socket in row["address"], row)
        page = get(number, "/").text
        check(f"<td>shm</td><td>{row['address']}</td><td>app</td><td>read-write</td>" in page, page)
        check(row["credits"] > 0 and row["reported_reads"] == 0, row)
        while row["writes"] == 0:
            check(load.poll() is None, "kvcli ended")
            row = json.loads(get(number, "/status.json").text)["sessions"][0]
        check(row["requests"] >= row["writes"] and row["received_bytes"] >= 66 * row["writes"], row)
        check('kvd_sessions{transport="shm"} 1\nkvd_sessions{transport="rdma"} 0\n'
              in get(number, "/metrics").text, "sessions are not counted")
        check("5a5a" not in page + json.dumps(rows), "secrets are shown")
        load.communicate(timeout=TIMEOUT_S)
    finally:
        server.close()


def slow():
    """--slow_log: the last requests that took so long are listed, with whose they are, for an administrator"""
    server = Server(KVD, "--memory=64m", "--hugepages=off", "--admin=0", "--slow_log=1us")
    client = Kvcli(KVCLI_BINARY, server.target)
    try:
        server.start(client)
        client.ok("put", "key-nobody-may-see", "value-nobody-may-see")
        text = client.ok("slowlog", "-w", "json").decode()
        rows = [json.loads(line) for line in text.splitlines()]
        put = next(row for row in rows if row["operation"] == "put")
        check_equal((put["key_bytes"], put["value_bytes"]), (18, 20))
        check(put["session"] > 0 or put["name"] == "-", put)
        check(put["us"] >= 1 and put["phase"] in ("waiting", "pulling", "evicting", "executing"), put)
        check_equal(len(client.ok("slowlog", "1", "-w", "json").decode().splitlines()), 1)
        for i in range(150):
            client.ok("put", f"k{i}", "v")
        shown = json.loads(get(port_in(server.log()), "/status.json").text)
        check_equal(len(shown["slow_requests"]), 128)
        check(shown["statistics"]["slow_requests"] > 128, shown["statistics"])
        page = get(port_in(server.log()), "/").text
        check("Slow requests" in page, page)
        for everything in (text, page, json.dumps(shown)):
            check("nobody-may-see" not in everything, "items are shown")
    finally:
        server.close()
    KVCLI.ok("put", "a", "b")
    quick = Server(KVD, "--memory=64m", "--hugepages=off", "--slow_log=0")
    client = Kvcli(KVCLI_BINARY, quick.target)
    try:
        quick.start(client)
        client.ok("put", "a", "b")
        check_equal(client.ok("slowlog"), b"")
    finally:
        quick.close()
    for value in ("10", "1ns", "-1s", "25h", "soon"):
        exit_status, err = run_kvd("--slow_log=" + value)
        check_equal(exit_status, 2, value)
        check(f"--slow_log={value}: expected a time" in err, err)


def flags():
    """--admin: refuses what others could reach, and says what to do; names what is wrong"""
    exit_status, err = run_kvd("--admin=0.0.0.0:0")
    check_equal(exit_status, 78)
    check("--admin=PORT" in err and "--insecure" in err and err.count("\n") == 1, err)
    check_equal(run_kvd("--admin=0.0.0.0:0", "--check")[0], 78)
    check_equal(run_kvd("--admin=0.0.0.0:0", "--insecure", "--check")[0], 0)
    exit_status, err = run_kvd("--admin=localhost")
    check_equal(exit_status, 2)
    check("--admin=localhost: expected [HOST:]PORT" in err, err)
    taken = f"127.0.0.1:{port()}"
    for more, expected in (([], 1), (["--check"], 78)):
        exit_status, err = run_kvd(f"--admin={taken}", *more)
        check_equal(exit_status, expected)
        check(f"--admin: {taken} is in use" in err, err)
    check(not os.path.exists(SERVER.path("other.sock")), "a socket is left behind")


def descriptors():
    return len(os.listdir(f"/proc/{SERVER.process.pid}/fd"))


class Nuisance(threading.Thread):
    """Does something unpleasant again and again until told to stop."""

    def __init__(self, once):
        super().__init__(daemon=True)
        self.once = once
        self.stopping = threading.Event()
        self.times = 0

    def run(self):
        while not self.stopping.is_set():
            try:
                self.once()
            except (OSError, Exception):  # pylint: disable=broad-except
                pass  # being thrown out is what it is after
            self.times += 1

    def stop(self):
        self.stopping.set()
        self.join(TIMEOUT_S)
        check(not self.is_alive(), "a nuisance hangs")
        check(self.times > 0, "a nuisance did nothing")


def hold_many(random):
    """Opens more connections than there may be, from many addresses, and says little or nothing."""
    peers = []
    try:
        for _ in range(60):
            peers.append(connect(port(), f"127.0.{random.randrange(1, 20)}.{random.randrange(1, 250)}"))
            if random.random() < 0.5:
                peers[-1].sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    finally:
        for peer in peers:
            peer.close()


def hostile():
    """Slow, oversized and countless requests: every PUT is done meanwhile, and nothing is left behind"""
    random = seeded_random()
    before = descriptors()
    items = 20_000
    lines = b"".join(b"hostile-%d\t%s\n" % (i, b"v" * (i % 300)) for i in range(items))
    slow = connect(port(), "127.0.9.9")
    nuisances = [
        Nuisance(lambda: hold_many(random)),
        Nuisance(lambda: ask(port(), b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n")),
        Nuisance(lambda: ask(port(), b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n")),
        Nuisance(lambda: ask(port(), random.randbytes(5000))),
        Nuisance(lambda: get(port(), "/metrics")),
        Nuisance(lambda: slow.sendall(b"a")),
    ]
    for nuisance in nuisances:
        nuisance.start()
    try:
        load = KVCLI.run("load", "-", stdin=lines)
        check_equal(load.exit, 0, load.err)
    finally:
        for nuisance in nuisances:
            nuisance.stop()
        slow.close()
    check_equal(KVCLI.ok("get", f"hostile-{items - 1}"), b"v" * ((items - 1) % 300))
    check_equal(get(port(), "/readyz").status, 200)
    while descriptors() > before:  # ends by the test's own time limit
        check(SERVER.process.poll() is None, "kvd ended")


def silence():
    """A connection that asks nothing, or asks bit by bit, is closed by the server"""
    with connect(port()) as silent, connect(port()) as slow:
        check_equal(read_all(silent), b"")
        try:
            while True:
                slow.sendall(b"a")
        except OSError:
            pass


def stopping():
    """SIGTERM: ends with connections open, and gives the port back"""
    number = port()
    with connect(number):
        SERVER.process.terminate()
        check_equal(SERVER.process.wait(TIMEOUT_S), 0)
    SERVER.process = None
    check_equal(run_kvd(f"--admin={number}", "--check")[0], 0)


if __name__ == "__main__":
    try:
        SERVER.start(KVCLI)
        run_cases([probes, status, sessions, slow, flags, silence, hostile, stopping])
    finally:
        SERVER.close()
