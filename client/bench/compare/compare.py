#!/usr/bin/env python3
"""kvd beside what people use instead, on this machine, in one run.

    client/bench/compare/compare.py [OPTIONS]

Starts each peer on sockets of its own in a temporary folder, runs the same loads against one after the other, several rounds,
and takes medians. Writes into --out: compare.json (everything, with each round's figures), compare.md (the table) and, where
gnuplot is installed, SVG plots. Peers that are not installed are skipped, and named.

Peers: memcached (Unix socket and TCP), redis (Unix socket), LMDB and absl::flat_hash_map in process, kvd over shared memory.
Debian's packages: memcached redis-server gnuplot-nox. Nothing listens beyond loopback, and all that was started is stopped.

    --guest runs in tests/softroce's guest instead, across two RDMA devices: memcached and redis over TCP, perftest, kvd over
    verbs. It is called there, see docs/performance.md.

Build first: bazel build --config=opt //server:kvd //client/bench/kvbench //client/bench/compare:all
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)
import plots  # noqa: E402
import table  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="bazel-bin", help="where Bazel's programs are")
    parser.add_argument("--out", default="docs/compare", help="folder for what is written")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; medians are taken over them")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--clients", default="1,2,4", help="for the plot of throughput")
    parser.add_argument("--key_counts", default="10000,100000,1000000", help="for the plot of growth")
    parser.add_argument("--load_keys", type=int, default=400_000,
                        help="items up to which READs per GET are counted")
    parser.add_argument("--realtime", action="store_true",
                        help="give all that runs a real-time priority (root), so that what else the machine does disturbs "
                        "less")
    parser.add_argument("--only", default="", help="peers, with commas; all without it")
    parser.add_argument("--smoke", action="store_true", help="few operations: does everything work?")
    parser.add_argument("--guest", action="store_true", help="in the guest, over the network")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rounds, arguments.seconds, arguments.keys = 1, 0.1, 2000
        arguments.clients, arguments.key_counts, arguments.load_keys = "1,2", "500,2000", 4000
    return arguments


class Peer:
    """A store to measure. `command` is None where it lives in the measuring process."""

    def __init__(self, name, program, target, command=None, needs=None):
        self.name = name
        self.program = program
        self.target = target
        self.command = command
        self.needs = needs
        self.process = None

    def missing(self):
        """Why it cannot be measured, or nothing."""
        if self.needs is not None and shutil.which(self.needs, path=tool_path()) is None:
            return f"{self.needs} is not installed"
        return ""

    def folder(self):
        """Where it keeps its items, if it does so in files."""
        return self.target[5:] if self.target.startswith("lmdb:") else ""

    def keeps_items(self):
        """From one run to the next."""
        return self.command is not None or bool(self.folder())

    def start(self, log):
        if self.command is None:
            return
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


def tool_path():
    return os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin:/sbin"


class Bench:
    """Runs the load generators."""

    def __init__(self, arguments, work):
        self.arguments = arguments
        self.work = work
        self.kvbench = os.path.join(arguments.bin, "client/bench/kvbench/kvbench")
        self.peerbench = os.path.join(arguments.bin, "client/bench/compare/peerbench")
        self.kvd = os.path.join(arguments.bin, "server/kvd")
        self.log = open(os.path.join(work, "log"), "ab")

    def run(self, peer, *flags):
        """What one run reports; with its own peer, if that is a process. None: it could not be run."""
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run([peer.program, f"--server={peer.target}", "--json=-", *flags],
                                  capture_output=True, check=False)
            if done.returncode == 0:
                return json.loads(done.stdout)
            # A server that has just been started does not listen yet.
            gone = peer.process is not None and peer.process.poll() is not None
            if done.returncode != 3 or gone or time.monotonic() > deadline:
                sys.stderr.write(f"compare.py: {peer.name} {' '.join(flags)}: {done.stderr.decode()}")
                return None
            time.sleep(0.05)

    @contextlib.contextmanager
    def running(self, peer):
        """The peer, fresh and started; stopped and removed afterwards."""
        if peer.folder():
            os.makedirs(peer.folder())
        peer.start(self.log)
        try:
            yield peer
        finally:
            peer.stop()
            if peer.folder():
                shutil.rmtree(peer.folder())

    def measure(self, peer, *flags):
        """One run against a peer that is started for it."""
        with self.running(peer):
            return self.run(peer, *flags)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def megabytes(keys):
    """Memory for so many items of 8 + 64 bytes, with room in every store: no peer is to evict or fail."""
    return max(64, keys * 320 // (1 << 20))


def peers_of(bench, keys):
    work, memory = bench.work, megabytes(keys)
    port = free_port()
    me = os.environ.get("USER", "") or "root"
    memcached = ["memcached", "-u", me, "-m", str(memory), "-M", "-t", "2", "-c", "1200"]
    unlimited = ["redis-server", "--save", "", "--appendonly", "no", "--port", "0", "--daemonize", "no"]
    return [
        Peer("kvd, shared memory", bench.kvbench, f"shm:{work}/kvd.sock",
             [bench.kvd, f"--shm={work}/kvd.sock", f"--memory={memory}m"]),
        Peer("memcached, Unix socket", bench.peerbench, f"memcached:{work}/memcached.sock",
             memcached + ["-s", f"{work}/memcached.sock"], "memcached"),
        Peer("memcached, TCP", bench.peerbench, f"memcached:127.0.0.1:{port}",
             memcached + ["-l", "127.0.0.1", "-p", str(port)], "memcached"),
        Peer("redis, Unix socket", bench.peerbench, f"redis:{work}/redis.sock",
             unlimited + ["--unixsocket", f"{work}/redis.sock", "--dir", work], "redis-server"),
        Peer("LMDB, in process", bench.peerbench, f"lmdb:{work}/lmdb"),
        Peer("flat_hash_map, in process", bench.peerbench, "map:"),
    ]


# What the table compares: name, flags.
LOADS = [
    ("GET", ["--mix=100:0"]),
    ("GET, one in 100 timed", ["--mix=100:0", "--sample=100"]),
    ("MultiGet of 64", ["--mix=100:0", "--batch=64"]),
    ("PUT", ["--mix=0:100"]),
    ("YCSB A", ["--mix=a"]),
    ("YCSB B", ["--mix=b"]),
]


def figures_of(report):
    run = report["runs"][0]
    first = next(iter(run["operations"].values()))
    return {
        "ops_per_second": run["figures"]["operations_per_second"],
        "p50_us": first["time_us"]["p50"],
        "p99_us": first["time_us"]["p99"],
        "p99_9_us": first["time_us"]["p99_9"],
        "server_cpu_us": run["figures"].get("server_cpu_us_per_operation"),
    }


def medians(rounds):
    result = {}
    for name in rounds[0]:
        values = [entry[name] for entry in rounds if entry[name] is not None]
        result[name] = statistics.median(values) if values else None
    return result


def compare_loads(bench, present, keys, seconds):
    """{load: {peer: {"rounds": [...], "median": {...}}}}, rounds interleaved."""
    result = {load: {peer.name: {"rounds": []} for peer in present} for load, _ in LOADS}
    for number in range(bench.arguments.rounds):
        for peer in present:
            with bench.running(peer):
                loaded = []
                for load, flags in LOADS:
                    report = bench.run(peer, f"--keys={keys}", f"--seconds={seconds}s", "--warmup=200ms", *flags,
                                       *loaded)
                    if report is not None:
                        result[load][peer.name]["rounds"].append(figures_of(report))
                    loaded = ["--load=false"] if peer.keeps_items() else []
            print(f"round {number + 1}: {peer.name}", flush=True)
    for entries in result.values():
        for entry in entries.values():
            entry["median"] = medians(entry["rounds"]) if entry["rounds"] else None
    return result


def latency_curves(bench, present, keys, seconds):
    """Percentiles of GETs: {peer: text of a .hgrm file}."""
    curves = {}
    for peer in present:
        prefix = os.path.join(bench.work, "curve")
        report = bench.measure(peer, f"--keys={keys}", f"--seconds={seconds}s", "--warmup=200ms", "--mix=100:0",
                               f"--hgrm={prefix}")
        if report is None:
            continue
        with open(prefix + ".get.hgrm", encoding="ascii") as text:
            curves[peer.name] = text.read()
    return curves


def against_clients(bench, present, keys, seconds):
    """{peer: [[clients, GETs a second]]}"""
    result = {}
    for peer in present:
        rows = result.setdefault(peer.name, [])
        with bench.running(peer):
            loaded = []
            for clients in bench.arguments.clients.split(","):
                report = bench.run(peer, f"--keys={keys}", f"--seconds={seconds}s", "--warmup=200ms", "--mix=100:0",
                                   "--sample=100", f"--clients={clients}", *loaded)
                if report is not None:
                    rows.append([int(clients), figures_of(report)["ops_per_second"]])
                loaded = ["--load=false"] if peer.keeps_items() else []
    return result


def against_keys(bench, names, seconds):
    """{peer: [[keys, p50 us of a GET]]}, and what one dependent read of as much memory takes."""
    counts = [int(count) for count in bench.arguments.key_counts.split(",")]
    result = {}
    for count in counts:
        for peer in peers_of(bench, count):
            if peer.name not in names:
                continue
            report = bench.measure(peer, f"--keys={count}", f"--seconds={seconds}s", "--warmup=200ms", "--mix=100:0")
            if report is not None:
                result.setdefault(peer.name, []).append([count, figures_of(report)["p50_us"]])
    # 128 bytes an item: its own, and its share of an index.
    chase = subprocess.run([os.path.join(bench.arguments.bin, "client/bench/compare/pointer_chase"),
                            *[str(count * 128) for count in counts]],
                           capture_output=True, check=True, text=True).stdout
    result["one dependent read of 128 B x keys"] = [
        [count, float(line.split()[1]) / 1e3] for count, line in zip(counts, chase.splitlines())]
    return result


def reads_over_load(bench):
    """READs per GET of a kvd that fills up: [[items, READs per hit, READs per miss, user bytes per region byte]]."""
    rows = []
    most = bench.arguments.load_keys
    peer = peers_of(bench, most)[0]
    peer.start(bench.log)
    try:
        for step in range(1, 13):
            keys = most * step // 12
            common = [f"--keys={keys}", "--operations=20000", "--warmup=0", "--mix=100:0", "--read_whole_buckets"]
            hits = bench.run(peer, *common)
            misses = bench.run(peer, *common, "--load=false", "--misses=100")
            if hits is None or misses is None:
                continue
            stats = hits["runs"][0]["server"]["after"]
            used = int(stats["index_bytes"]) + int(stats["heap_bytes"])
            rows.append([int(stats["items"]), hits["runs"][0]["figures"]["reads_per_get"],
                         misses["runs"][0]["figures"]["reads_per_get"], int(stats["user_bytes"]) / used])
    finally:
        peer.stop()
    return rows


def memory_per_item(bench, present, keys):
    """Bytes a store takes for an item of 8 + 64 bytes, as it says itself; nothing where it does not."""
    result = {}
    for peer in present:
        report = bench.measure(peer, f"--keys={keys}", "--operations=1000", "--warmup=0", "--mix=100:0")
        if report is None:
            continue
        stats = report["runs"][0]["server"]["after"]
        if "index_bytes" in stats:
            result[peer.name] = (int(stats["index_bytes"]) + int(stats["heap_bytes"])) / keys
        elif "bytes" in stats and "hash_bytes" in stats:  # memcached: items, and its table
            result[peer.name] = (int(stats["bytes"]) + int(stats["hash_bytes"])) / keys
        elif "used_memory" in stats:
            result[peer.name] = int(stats["used_memory"]) / keys
    return result


def compare_here(arguments):
    work = tempfile.mkdtemp(prefix="kvd-compare.", dir="/tmp")
    try:
        bench = Bench(arguments, work)
        wanted = [peer for peer in peers_of(bench, arguments.keys)
                  if not arguments.only or any(word in peer.name for word in arguments.only.split(","))]
        skipped = {peer.name: peer.missing() for peer in wanted if peer.missing()}
        for name, reason in skipped.items():
            print(f"skipped: {name}: {reason}", flush=True)
        present = [peer for peer in wanted if peer.name not in skipped]
        names = [peer.name for peer in present]
        result = {"when": time.strftime("%Y-%m-%d"), "keys": arguments.keys, "rounds": arguments.rounds,
                  "seconds": arguments.seconds, "realtime": arguments.realtime, "skipped": skipped, "peers": names,
                  "load_average": os.getloadavg()[0], "machine": machine(bench)}
        result["loads"] = compare_loads(bench, present, arguments.keys, arguments.seconds)
        result["memory_per_item"] = memory_per_item(bench, present, arguments.keys)
        result["latency"] = latency_curves(bench, present, arguments.keys, arguments.seconds)
        result["clients"] = against_clients(bench, present, arguments.keys, arguments.seconds)
        result["growth"] = against_keys(bench, names, arguments.seconds)
        result["reads"] = reads_over_load(bench) if "kvd, shared memory" in names else []
        result["load_average_end"] = os.getloadavg()[0]
        return result
    finally:
        shutil.rmtree(work, ignore_errors=True)


def machine(bench):
    report = bench.measure(Peer("flat_hash_map", bench.peerbench, "map:"), "--keys=10", "-n", "10", "--warmup=0")
    return report["machine"] if report is not None else {}


def main():
    arguments = parse_arguments()
    for program in ("server/kvd", "client/bench/kvbench/kvbench"):
        if not os.access(os.path.join(arguments.bin, program), os.X_OK):
            sys.exit(f"compare.py: {arguments.bin}/{program} is not built; "
                     "see compare.py --help")
    os.makedirs(arguments.out, exist_ok=True)
    if arguments.realtime:  # inherited by all that is started
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    if arguments.guest:
        import guest
        guest.compare(arguments, Bench, Peer)
        return
    result = compare_here(arguments)
    with open(os.path.join(arguments.out, "compare.json"), "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    with open(os.path.join(arguments.out, "compare.md"), "w", encoding="utf-8") as out:
        out.write(table.markdown(result))
    print(table.markdown(result))
    if shutil.which("gnuplot", path=tool_path()) is None:
        print("skipped: plots: gnuplot is not installed")
    else:
        plots.draw(result, arguments.out)


if __name__ == "__main__":
    main()
