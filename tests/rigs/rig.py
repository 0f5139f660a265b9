#!/usr/bin/env python3
"""Rounds of faults against a real kvd and real clients, chosen by a seed, counted, until the time is up or one fails.

    rig.py b --bin=DIR --seconds=600 --seed=7       processes over shared memory
    rig.py c --bin=DIR --seconds=600 --seed=7       over RDMA: within the guest, with two devices (c.sh does that)
    rig.py b --bin=DIR --seed=7 --round=12          that round alone
    rig.py b --list                                 the kinds of rounds

DIR is bazel-bin or a test's runfiles. A round runs one program of the tree: history_recorder (whose histories are checked
for linearizability, and after which kvd must have back what its clients held), torn_read_hunt, soak, or cases of a test. The seed of the rig
decides what each round runs, with which faults and seed; not how processes interleave.

The last line of the output is a JSON object with what was counted. Exit: 0 all rounds passed, 1 one did not, 2 usage.
"""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import threading
import time

RECORDER = "tests/linearizability/history_recorder"
CLOCK = "tests/linearizability/libclock_jump.so"
HUNT = "tests/stress/torn_read_hunt"
SOAK = "tests/rigs/soak"
KVD = "server/kvd"
ROUND_SECONDS_MAX = 900

# Names in a program's output -> names in the summary.
COUNTED = {
    "operations": "operations", "reads": "operations", "writes": "operations", "kvd_kills": "kvd_kills",
    "client_kills": "client_kills", "kvd_stops": "kvd_stops", "client_stops": "client_stops", "clock_jumps": "clock_jumps",
    "torn_reads": "torn_reads_seen", "torn_reads_seen": "torn_reads_seen", "wrong_keys": "wrong_answers",
    "wrong_answers": "wrong_answers", "reconnects": "sessions_made_anew", "unknown": "writes_of_unknown_outcome",
    "evicted_items": "evicted_items", "failed_allocations": "failed_allocations", "bits_flipped": "bits_flipped",
}
# Faults of docs/reliability.md -> counts of the summary that are such faults.
ROWS_OF_COUNTS = {"client_kills": ["1", "2"], "kvd_kills": ["3"], "kvd_stops": ["4"], "client_stops": ["5"],
                  "clock_jumps": ["19"], "bits_flipped": ["8"], "failed_allocations": ["22"]}


class Round:
    """What one round runs; `rows`: the faults that it has besides those that are counted."""

    def __init__(self, name, command, rows=(), environment=None, disturb=None):
        self.name = name
        self.command = command
        self.rows = rows
        self.environment = environment or {}
        self.disturb = disturb


def recorder(chance, files, **flags):
    command = [files + RECORDER, "--kvd=" + files + KVD, "--seed=%d" % chance.randrange(1, 2**31)]
    return command + ["--%s=%s" % flag for flag in flags.items()]


def case(name, program, cases, rows, **environment):
    """Cases of a test, which take their seed from the environment."""
    def make(chance, files):
        # TEST_TARGET: for the lines that tell of each case.
        settings = {"KVD": files + KVD, "KVD_TEST_SEED": str(chance.randrange(1, 2**31)), "TEST_TARGET": "rig"}
        settings.update({key: files + value if value.startswith("tests/") else value for key, value in environment.items()})
        return Round(name, [files + program, cases], rows, settings)
    make.__name__ = name.replace(" ", "_")
    return make


def killed_kvd(chance, files):
    return Round("kvd is killed", recorder(
        chance, files, ops=chance.choice([15000, 40000]), kvd_restarts=chance.randint(5, 20),
        client_kills=chance.randint(0, 30), deadline_ms=chance.choice([50, 500, 5000]), pollers=chance.choice([1, 2]),
        memory=chance.choice(["16m", "64m"])))


def killed_clients(chance, files):
    return Round("clients are killed", recorder(
        chance, files, ops=chance.choice([50000, 150000]), client_kills=chance.randint(50, 300),
        clients=chance.choice([3, 5, 8]), pollers=chance.choice([1, 2])))


def stopped(chance, files):
    return Round("kvd and clients are stopped", recorder(
        chance, files, ops=chance.choice([40000, 100000]), kvd_stops=chance.randint(3, 20),
        client_stops=chance.randint(5, 40), deadline_ms=chance.choice([10, 50, 200]), client_kills=chance.randint(0, 10)))


def everything(chance, files):
    return Round("everything at once", recorder(
        chance, files, ops=100000, kvd_restarts=chance.randint(1, 5), kvd_stops=chance.randint(1, 5),
        client_stops=chance.randint(1, 20), client_kills=chance.randint(1, 50), readers=chance.randint(0, 2),
        breathers=chance.randint(0, 2), deadline_ms=chance.choice([20, 200]), bucket_bytes=chance.choice([512, 1024, 4096])))


def full(chance, files):
    evict = chance.random() < 0.6
    return Round("full", recorder(
        chance, files, ops=chance.choice([200000, 400000]), memory="4m", pollers=1, fillers=3,
        evict=str(evict).lower(), client_kills=chance.randint(0, 20)), rows=["12"])


def clocks(chance, files):
    return Round("clocks jump", recorder(
        chance, files, ops=60000, clock_jumps=chance.randint(5, 40), clock_library=files + CLOCK,
        client_kills=chance.randint(0, 5), expiry_error_ms=500))


def growing(chance, files):
    return Round("growing and shrinking", recorder(
        chance, files, ops=300000, memory="16m", pollers=1, bucket_bytes=4096, fillers=0, breathers=2,
        client_stops=10, client_kills=chance.randint(0, 20)), rows=["13"])


def torn(chance, files):
    return Round("torn reads", [
        files + HUNT, "--kvd=" + files + KVD, "--seconds=10", "--seed=%d" % chance.randrange(1, 2**31),
        "--keys=%d" % chance.choice([4, 16, 64]), "--readers=%d" % chance.choice([2, 4])])


def soak(chance, files):
    command = [files + SOAK, "--kvd=" + files + KVD, "--seconds=0", "--seed=%d" % chance.randrange(1, 2**31),
               "--clients=%d" % chance.choice([2, 4, 8])]
    if "KVD_RDMA_ADDRESSES" in os.environ:
        return Round("soak", command + ["--cycles=4", "--cycle_operations=2000", "--memory_mib=64",
                                        "--rdma=" + os.environ["KVD_RDMA_ADDRESSES"].split(",")[-1]], rows=["13"])
    return Round("soak", command + ["--cycles=4", "--cycle_operations=10000"], rows=["12", "13"])


KINDS_B = [
    (6, killed_kvd), (4, killed_clients), (3, stopped), (3, everything), (2, full), (2, clocks), (2, growing), (3, torn), (1, soak),
    (2, case("storm", "tests/rigs/storm_test", "*", ["15"])),
    (1, case("damage", "tests/rigs/damage_test", "*", [])),
    (1, case("few descriptors", "tests/rigs/storm_test", "*descriptors*", ["15"])),
    (1, case("fork", "tests/stress/kill_test", "*fork*", ["20"])),
    (1, case("stopped and killed", "tests/stress/kill_test", "Kill: *", [])),
    (1, case("limits and hostile clients", "tests/e2e/kvd_life_test",
             "kvd: without descriptors*,kvd: hostile clients*,kvd: after a storm*,kvd: refuses more*", ["15", "17", "18"])),
]


class Netem:
    """Faults of the wire for as long as a round runs."""

    def __init__(self, faults):
        self.faults = faults

    def begin(self):
        for netdev in netdevs():
            subprocess.run(["tc", "qdisc", "replace", "dev", netdev, "root", "netem", "limit", "100000"] +
                           self.faults.split(), check=True)

    def end(self):
        for netdev in netdevs():
            subprocess.run(["tc", "qdisc", "del", "dev", netdev, "root"], check=True)


class Flaps:
    """A link that goes down and up again and again while a round runs."""

    def __init__(self, chance):
        self.chance = random.Random(chance.random())
        self.count = 0

    def begin(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over.wait(self.chance.uniform(2, 5)):
            netdev = self.chance.choice(netdevs())
            subprocess.run([os.environ["KVD_GUEST_NETWORK"], "down", netdev], check=True)
            self.over.wait(self.chance.uniform(0.05, 2))
            subprocess.run([os.environ["KVD_GUEST_NETWORK"], "up", netdev], check=True)
            self.count += 1

    def end(self):
        self.over.set()
        self.thread.join()


def netdevs():
    return os.environ["KVD_RDMA_NETDEVS"].split(",")


def over_rdma(chance, files, **flags):
    settings = {"rdma": os.environ["KVD_RDMA_ADDRESSES"].split(",")[-1], "memory": "64m", "pollers": 1, "clients": 4,
                "expiry_error_ms": 1000, "deadline_ms": 20000, "ops": 4000}
    settings.update(flags)
    return recorder(chance, files, **settings)


def wire(chance, files):
    faults = chance.choice(["loss 1%", "loss 5%", "loss 10%", "delay 1ms 500us", "duplicate 5%", "delay 1ms reorder 25% 50%"])
    return Round("wire: " + faults, over_rdma(chance, files, ops=chance.choice([1500, 3000])), rows=["7"],
                 disturb=Netem(faults))


def flapping(chance, files):
    return Round("a link flaps", over_rdma(chance, files, ops=6000, deadline_ms=2000), rows=["6"], disturb=Flaps(chance))


def rdma_killed_kvd(chance, files):
    return Round("kvd is killed", over_rdma(chance, files, kvd_restarts=chance.randint(1, 4),
                                            client_kills=chance.randint(0, 4)))


def rdma_killed_clients(chance, files):
    return Round("clients are killed", over_rdma(chance, files, ops=8000, client_kills=chance.randint(3, 12)))


def rdma_stopped(chance, files):
    return Round("kvd and clients are stopped", over_rdma(
        chance, files, kvd_stops=chance.randint(1, 5), client_stops=chance.randint(1, 8), deadline_ms=500))


def rdma_torn(chance, files):
    return Round("torn reads", [
        files + HUNT, "--kvd=" + files + KVD, "--rdma=" + os.environ["KVD_RDMA_ADDRESSES"].split(",")[-1], "--seconds=20",
        "--seed=%d" % chance.randrange(1, 2**31), "--readers=3", "--keys=16"])


KINDS_C = [
    (4, wire), (2, rdma_killed_kvd), (2, rdma_killed_clients), (2, rdma_stopped), (2, rdma_torn), (1, flapping), (1, soak),
    (1, case("device removed", "tests/stress/rdma_link", "*device that is removed*", ["21"])),
    (1, case("clients by the hundred", "tests/stress/rdma_clients", "*", ["1", "2", "15"])),
    (1, case("queue pairs, rkeys and small limits", "tests/conformance/verbs_conformance", "Verbs: *", ["9", "10", "11", "16", "17"])),
]


def choose(kinds, seed, number):
    chance = random.Random("%d/%d" % (seed, number))
    return chance.choices([make for _, make in kinds], [weight for weight, _ in kinds])[0], chance


class Rig:
    def __init__(self, options):
        self.options = options
        self.kinds = KINDS_B if options.rig == "b" else KINDS_C
        self.files = os.path.join(os.path.abspath(options.bin), "")
        self.totals = collections.Counter()
        self.rows = collections.Counter()
        self.longest_over_deadline_ms = 0
        self.rounds = collections.Counter()
        self.failed = None

    def run(self):
        begun = time.monotonic()
        number = self.options.round if self.options.round is not None else 0
        while True:
            self.run_round(number)
            number += 1
            over = time.monotonic() - begun >= self.options.seconds
            if self.failed or over or self.options.round is not None:
                break
        self.summarize(time.monotonic() - begun)
        return 1 if self.failed else 0

    def run_round(self, number):
        make, chance = choose(self.kinds, self.options.seed, number)
        todo = make(chance, self.files)
        begun = time.monotonic()
        if todo.disturb:
            todo.disturb.begin()
        try:
            done = subprocess.run(todo.command, env={**os.environ, **todo.environment}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=ROUND_SECONDS_MAX, check=False)
            status, output = done.returncode, done.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            status, output = "none in %d s" % ROUND_SECONDS_MAX, (late.stdout or b"").decode(errors="replace")
        finally:
            if todo.disturb:
                todo.disturb.end()
        counts = self.count(output, todo)
        seconds = time.monotonic() - begun
        if status == 0 and "TEST_TARGET" in todo.environment and counts["cases_passed"] + counts["cases_skipped"] == 0:
            status = "0, but no case ran,"
        print("round %d, %s: status %s in %.1f s%s" % (
            number, todo.name, status, seconds,
            "".join(", %s %d" % item for item in sorted(counts.items()) if item[1])), flush=True)
        self.rounds[todo.name] += 1
        if status != 0:
            self.fail(number, todo, output)

    def count(self, output, todo):
        counts = collections.Counter()
        for line in output.splitlines():
            words = line.split()
            if len(words) != 2 or not words[1].isdigit():
                if line.startswith("KVD_CASE passed"):
                    counts["cases_passed"] += 1
                if line.startswith("KVD_CASE skipped"):
                    counts["cases_skipped"] += 1
                continue
            if words[0] in COUNTED:
                counts[COUNTED[words[0]]] += int(words[1])
            if words[0] == "longest_over_deadline_ms" and "client_stops 0" in output:
                self.longest_over_deadline_ms = max(self.longest_over_deadline_ms, int(words[1]))
        self.totals.update(counts)
        for name, rows in ROWS_OF_COUNTS.items():
            for row in rows:
                self.rows[row] += counts[name]
        for row in todo.rows:
            self.rows[row] += max(1, getattr(todo.disturb, "count", 1))
        return counts

    def fail(self, number, todo, output):
        self.failed = "tests/rigs/%s.sh --seed=%d --round=%d" % (self.options.rig, self.options.seed, number)
        print(output)
        settings = " ".join("%s=%s" % item for item in todo.environment.items())
        print("FAILED: round %d, %s\nto repeat it: %s\nthat is: %s %s" % (
            number, todo.name, self.failed, settings, " ".join("'%s'" % word for word in todo.command)))

    def summarize(self, seconds):
        summary = {"rig": self.options.rig, "seed": self.options.seed, "seconds": round(seconds),
                   "rounds": sum(self.rounds.values())}
        for name in sorted(set(COUNTED.values())):
            summary[name] = self.totals[name]
        for name in ("cases_passed", "cases_skipped"):
            summary[name] = self.totals[name]
        summary["longest_over_deadline_ms"] = self.longest_over_deadline_ms
        summary["faults_by_row"] = {row: self.rows[row] for row in sorted(self.rows, key=int) if self.rows[row]}
        summary["failed"] = self.failed
        print(json.dumps(summary), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rig", choices=["b", "c"])
    parser.add_argument("--bin", default="bazel-bin")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--round", type=int, default=None)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--case", help="report as a test does, under this name")
    options = parser.parse_args()
    if options.list:
        for weight, make in KINDS_B if options.rig == "b" else KINDS_C:
            print(weight, make.__name__)
        return 0
    if options.seed is None:
        options.seed = int(os.environ.get("KVD_TEST_SEED") or random.SystemRandom().randrange(1, 2**31))
    print("KVD_TEST_SEED=%d" % options.seed)
    if options.case:
        print("KVD_CASE begins " + options.case, flush=True)
    result = Rig(options).run()
    if options.case:
        print("KVD_CASE %s %s" % ("failed" if result else "passed", options.case))
    return result


if __name__ == "__main__":
    sys.exit(main())
