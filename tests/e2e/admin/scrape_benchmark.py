#!/usr/bin/env python3
"""What it costs to scrape kvd's metrics.

usage: scrape_benchmark.py KVD KVCLI KVBENCH [ROUNDS]

Prints how long a scrape of a full store takes, and the 99th percentile of PUTs without a scraper and with one that reads
/metrics ten times a second: in turn, ROUNDS of each (5), medians and their ratio. Not a test: it judges nothing.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "kvcli")]
from harness import Kvcli, Server  # noqa: E402
from http_peer import get, port_in  # noqa: E402

KVD, KVCLI_BINARY, KVBENCH = (os.path.abspath(path) for path in sys.argv[1:4])
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 5
SECONDS = 3
SERVER = Server(KVD, "--memory=1g", "--admin=0", "--evict=lru")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)


def scrape():
    began = time.perf_counter()
    reply = get(port_in(SERVER.log()), "/metrics")
    return (time.perf_counter() - began) * 1000, len(reply.body)


class Scraper(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.scrapes = 0

    def run(self):
        while not self.ended.wait(0.1):
            scrape()
            self.scrapes += 1


def puts_p99_us(scraped):
    scraper = Scraper()
    if scraped:
        scraper.start()
    done = subprocess.run([KVBENCH, "--server=" + SERVER.target, "--mix=0:100", "-k", "100000", "--load=false",
                           f"-D{SECONDS}s", "--json=-"], stdout=subprocess.PIPE, check=True, timeout=120)
    scraper.ended.set()
    if scraped:
        scraper.join()
    runs = json.loads(done.stdout)["runs"]
    return runs[0]["operations"]["put"]["time_us"]["p99"]


def main():
    SERVER.start(KVCLI)
    lines = (b"%08d\t%s\n" % (i, b"v" * 1000) for i in range(1_200_000))
    load = KVCLI.start("load", "-", stdin=subprocess.PIPE)
    for line in lines:
        load.stdin.write(line)
    load.communicate()
    stat = json.loads(KVCLI.ok("-w", "json", "stat"))
    print(f"{stat['items']} items of {stat['memory_bytes']} bytes; {stat['evicted_items']} evicted; load of the machine "
          f"{os.getloadavg()[0]:.1f}")
    times = [scrape() for _ in range(200)]
    print(f"scrape: median {statistics.median(t for t, _ in times):.2f} ms, longest {max(t for t, _ in times):.2f} ms, "
          f"{times[-1][1]} bytes")
    without, with_scraper = [], []
    for _ in range(ROUNDS):
        without.append(puts_p99_us(False))
        with_scraper.append(puts_p99_us(True))
    print("p99 of PUTs in us, without:", *without, " with a scraper:", *with_scraper)
    print(f"medians {statistics.median(without)} and {statistics.median(with_scraper)}, ratio "
          f"{statistics.median(with_scraper) / statistics.median(without):.3f}")


if __name__ == "__main__":
    try:
        main()
    finally:
        SERVER.close()
