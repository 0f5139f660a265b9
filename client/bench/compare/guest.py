"""compare.py --guest: across two RDMA devices of one machine, as tests/softroce's guest has them."""

import json
import os
import shutil
import statistics
import sys
import tempfile

SERVER = os.environ.get("KVD_RDMA_ADDRESSES", "10.77.0.1").split(",")[0]
CLIENT_DEVICE = os.environ.get("KVD_RDMA_DEVICES", "rxea,rxeb").split(",")[-1]


def peers_of(bench, peer):
    here = bench.work
    return [
        peer("kvd over verbs", bench.kvbench, f"rdma:{SERVER}:7711",
             [bench.kvd, f"--shm={here}/kvd.sock", f"--listen={SERVER}:7711", "--insecure", "--memory=64m"]),
        peer("memcached over TCP", bench.peerbench, f"memcached:{SERVER}:11211",
             ["memcached", "-u", "root", "-l", SERVER, "-p", "11211", "-t", "1"], "memcached"),
        peer("redis over TCP", bench.peerbench, f"redis:{SERVER}:6379",
             ["redis-server", "--bind", SERVER, "--port", "6379", "--save", "", "--appendonly", "no",
              "--protected-mode", "no", "--daemonize", "no", "--dir", here], "redis-server"),
    ]


# What is compared; the first element says which kinds of peer take part.
LOADS = [
    ("GET 64 B, cold", True, ["--mix=100:0"]),
    ("GET 64 B, location known", False, ["--mix=100:0", "--location_cache=65536", "--warmup=1s"]),
    ("MultiGet of 64, cold", True, ["--mix=100:0", "--batch=64"]),
    ("MultiGet of 64, locations known", False, ["--mix=100:0", "--batch=64", "--location_cache=65536", "--warmup=1s"]),
    ("PUT 64 B", True, ["--mix=0:100"]),
]


def measure(bench, peers, common):
    rows = []
    for load, for_all, flags in LOADS:
        for peer in peers:
            if not for_all and "kvd" not in peer.name:
                continue
            report = bench.measure(peer, *common, *flags,
                                   "--floor=auto" if "kvd" in peer.name else "--floor=off")
            if report is None:
                continue
            run = report["runs"][0]
            operation = next(iter(run["operations"].values()))
            rows.append({"load": load, "peer": peer.name, "p50_us": operation["time_us"]["p50"],
                         "p99_us": operation["time_us"]["p99"], "per_second": operation["per_second"],
                         "reads_per_get": run["figures"].get("reads_per_get"),
                         "server_cpu_us": run["figures"].get("server_cpu_us_per_operation"),
                         "floor": run.get("floor")})
            print(f"{load:34} {peer.name:20} p50 {rows[-1]['p50_us']:9.1f} us {rows[-1]['per_second']:10.0f}/s", flush=True)
            for line in (run.get("floor") or {}).get("lines", []):
                print(f"{'':34} {line['floor']}: {line['floor_value']:.1f}, ratio {line['ratio']:.2f}", flush=True)
            for note in (run.get("floor") or {}).get("notes", []):
                print(f"{'':34} no floor: {note}", flush=True)
    return rows


def summary(rounds):
    """A row for each load and peer: medians over the rounds."""
    result = []
    for first in rounds[0]:
        same = [row for rows in rounds for row in rows if (row["load"], row["peer"]) == (first["load"], first["peer"])]
        ratios = {}
        for row in same:
            for line in (row["floor"] or {}).get("lines", []):
                ratios.setdefault(line["floor"], []).append(line["ratio"])
        result.append({"load": first["load"], "peer": first["peer"],
                       "p50_us": statistics.median(row["p50_us"] for row in same),
                       "per_second": statistics.median(row["per_second"] for row in same),
                       "reads_per_get": first["reads_per_get"],
                       "ratios": {name: statistics.median(values) for name, values in ratios.items()}})
    return result


def markdown(result):
    text = "| | | p50 us | keys/s | READs per GET | ratio to the floor |\n| --- | --- | --- | --- | --- | --- |\n"
    for row in result:
        ratios = "; ".join(f"{value:.2f} of {name}" for name, value in row["ratios"].items())
        reads = f"{row['reads_per_get']:.3f}" if row["reads_per_get"] else ""
        text += f"| {row['load']} | {row['peer']} | {row['p50_us']:.1f} | {row['per_second']:,.0f} | {reads} | {ratios} |\n"
    return text


def compare(arguments, bench_class, peer_class):
    work = tempfile.mkdtemp(prefix="kvd-compare.", dir="/tmp")
    try:
        bench = bench_class(arguments, work)
        peers = peers_of(bench, peer_class)
        skipped = {peer.name: peer.missing() for peer in peers if peer.missing()}
        if not os.access(bench.peerbench, os.X_OK):
            skipped.update({peer.name: "peerbench is not built" for peer in peers if "kvd" not in peer.name})
        for name, reason in skipped.items():
            print(f"skipped: {name}: {reason}", flush=True)
        present = [peer for peer in peers if peer.name not in skipped]
        operations = 200 if arguments.smoke else 3000
        common = ["--keys=1000", f"--operations={operations}", "--warmup=300ms", "--deadline=60s"]
        rounds = []
        for number in range(arguments.rounds):
            print(f"round {number + 1}", flush=True)
            rounds.append(measure(bench, present, common))
        result = summary(rounds)
        print(markdown(result))
        with open(os.path.join(arguments.out, "guest.json"), "w", encoding="utf-8") as out:
            json.dump({"rounds": rounds, "median": result, "skipped": skipped}, out, indent=1)
            out.write("\n")
        with open(os.path.join(arguments.out, "guest.md"), "w", encoding="utf-8") as out:
            out.write(markdown(result))
        if not any(row["peer"].startswith("kvd") for row in result):
            sys.exit("compare.py: kvd could not be measured")
    finally:
        shutil.rmtree(work, ignore_errors=True)
