"""The plots of compare.py, as SVG by gnuplot."""

import os
import subprocess
import tempfile


def plot(path, title, settings, series, style="linespoints"):
    """`series`: {name: [[x, y], ...]}. Draws into `path`."""
    with tempfile.TemporaryDirectory(prefix="kvd-plot.") as work:
        parts = []
        for index, (name, rows) in enumerate(series.items()):
            data = os.path.join(work, str(index))
            with open(data, "w", encoding="ascii") as out:
                out.writelines(" ".join(str(value) for value in entry) + "\n" for entry in rows)
            parts.append(f"'{data}' using 1:2 with {style} lw 2 title '{name}'")
        script = ["set terminal svg size 900,480 font 'sans,13' background 'white'", f"set output '{path}'",
                  f"set title '{title}'", "set key outside right top", "set grid", *settings, "plot " + ", ".join(parts)]
        subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True)


def percentile_rows(hgrm):
    """[[1 / (1 - percentile), us]] of the text of a .hgrm file."""
    rows = []
    for line in hgrm.splitlines()[2:]:
        words = line.split()
        if not line.startswith("#") and len(words) == 4:
            rows.append([float(words[3]), float(words[0])])
    return rows


def draw(result, folder):
    def path(name):
        return os.path.join(folder, name)

    if result["latency"]:
        plot(path("latency.svg"), "GET, one client: time up to a percentile",
             ["set logscale xy", "set ylabel 'us'", "set xlabel 'percentile'",
              "set xtics ('0' 1, '90' 10, '99' 100, '99.9' 1000, '99.99' 10000, '99.999' 100000)",
              "set xrange [1:100000]"],
             {name: percentile_rows(text) for name, text in result["latency"].items()}, "lines")
    if any(result["clients"].values()):
        plot(path("clients.svg"), f"GETs a second against clients ({result['machine'].get('cores', '?')} cores)",
             ["set logscale y", "set ylabel 'GETs/s'", "set xlabel 'clients (threads)'", "set xtics 1"],
             {name: rows for name, rows in result["clients"].items() if rows})
    plot(path("growth.svg"), "GET, one client: median against number of keys",
         ["set logscale xy", "set ylabel 'us'", "set xlabel 'keys'", "set format x '10^{%L}'"], result["growth"])
    if result["reads"]:
        plot(path("reads.svg"), "kvd: READs of a cold GET while a store fills up",
             ["set ylabel 'READs'", "set xlabel 'items'", "set yrange [0.9:*]", "set format x '%.0s%c'"],
             {"a key that is there": [[entry[0], entry[1]] for entry in result["reads"]],
              "a key that is not": [[entry[0], entry[2]] for entry in result["reads"]]})
