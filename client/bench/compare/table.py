"""The table of compare.py, in Markdown."""


def number(value, digits=3):
    """With so many significant digits, and commas: 1,230,000; 0.25."""
    if value is None:
        return ""
    if value >= 1000:
        scale = 10 ** max(0, len(str(int(value))) - digits)
        return f"{round(value / scale) * scale:,}"
    return f"{value:.{digits}g}"


def row(cells):
    return "| " + " | ".join(cells) + " |\n"


def markdown(result):
    machine = result["machine"]
    text = (f"{result['keys']:,} items of 8 + 64 bytes, one client, {result['rounds']} rounds of {result['seconds']:g} s each, "
            f"interleaved; medians{', at a real-time priority' if result['realtime'] else ''}. {machine.get('cpu', '')}, {machine.get('cores', '')} cores, {machine.get('kernel', '')}; "
            f"load average {result['load_average']:.1f} at the beginning and {result['load_average_end']:.1f} at the end, and each "
            f"time holds {machine.get('clock_ns', 0):.0f} ns for the clock.\n\n")
    for load, entries in result["loads"].items():
        text += f"**{load}**\n\n"
        text += row(["", "operations/s", "p50 us", "p99 us", "p99.9 us", "server's CPU us each", "kvd's rate is"])
        text += row(["---"] * 7)
        kvd = (entries.get("kvd, shared memory") or {}).get("median")
        for name, entry in entries.items():
            figures = entry["median"]
            if figures is None:
                text += row([name, "failed", "", "", "", "", ""])
                continue
            ratio = ""
            if kvd and figures is not kvd:
                ratio = f"{kvd['ops_per_second'] / figures['ops_per_second']:.2f} times"
            text += row([name, number(figures["ops_per_second"]), number(figures["p50_us"]), number(figures["p99_us"]),
                         number(figures["p99_9_us"]), number(figures["server_cpu_us"], 2), ratio])
        text += "\n"
    if result["memory_per_item"]:
        text += "**Memory**, bytes for an item of 8 + 64 as the store itself counts\n\n" + row(["", "bytes"]) + row(["---"] * 2)
        for name, value in result["memory_per_item"].items():
            text += row([name, number(value)])
        text += "\n"
    for name, reason in result["skipped"].items():
        text += f"Skipped: {name}: {reason}.\n"
    return text
