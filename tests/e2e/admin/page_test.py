#!/usr/bin/env python3
"""page_test.py KVD KVCLI: the status page in a browser, with JavaScript and without it.

A screenshot of each stays in the test's outputs, for a person to look at.
"""

import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "kvcli")]
from harness import Kvcli, Server, Skipped, check, check_equal, run_cases  # noqa: E402
from http_peer import get, port_in  # noqa: E402

KVD, KVCLI_BINARY = (os.path.abspath(path) for path in sys.argv[1:])
SERVER = Server(KVD, "--memory=64m", "--hugepages=off", "--admin=0", "--slow_log=1us")
KVCLI = Kvcli(KVCLI_BINARY, SERVER.target)
OUTPUTS = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", SERVER.directory)


class Browser:
    """Chromium without a screen, with a profile of its own."""

    def __init__(self, javascript, dark=False):
        self.binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if self.binary is None:
            raise Skipped("there is no chromium (package chromium)")
        self.profile = SERVER.path(f"profile-{javascript}-{dark}")
        self.more = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else []
        os.makedirs(os.path.join(self.profile, "Default"), exist_ok=True)
        with open(os.path.join(self.profile, "Default", "Preferences"), "w", encoding="utf-8") as file:
            json.dump({"profile": {"default_content_setting_values": {"javascript": 1 if javascript else 2}}}, file)

    def run(self, *flags):
        done = subprocess.run(
            [self.binary, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--user-data-dir=" + self.profile, *self.more, *flags, f"http://127.0.0.1:{port_in(SERVER.log())}/"],
            capture_output=True, timeout=100, check=False, env={**os.environ, "HOME": SERVER.directory})
        check_equal(done.returncode, 0, done.stderr.decode(errors="replace")[-2000:])
        return done.stdout.decode()

    def screenshot(self, name, width, height):
        """What came out as a PNG of that size; the file is kept."""
        path = os.path.join(OUTPUTS, name + ".png")
        self.run(f"--window-size={width},{height}", "--screenshot=" + path)
        with open(path, "rb") as file:
            head = file.read(24)
        check_equal(head[:8], b"\x89PNG\r\n\x1a\n")
        check_equal((int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")), (width, height))
        check(os.path.getsize(path) > 20_000, "next to nothing is drawn:", os.path.getsize(path))


def check_whole(page):
    for text in ("Memory of the region", "How long requests took in kvd", "Slow requests", "Sessions", "Everything else",
                 "<th>put</th>", 'class="time"', 'class="heap_used"'):
        check(text in page, "the page lacks", repr(text))


def without_javascript():
    """The status page without JavaScript: is whole, and asks to be loaded again"""
    page = Browser(javascript=False).run("--dump-dom")
    check_whole(page)
    check("data-refreshed" not in page, "a script ran")
    check('<noscript><meta http-equiv="refresh"' in page, page[:500])


def with_javascript():
    """The status page with JavaScript: shows by itself what is new, and keeps open what the reader has opened"""
    KVCLI.ok("put", "before", "v")
    page = Browser(javascript=True).run("--virtual-time-budget=9000", "--dump-dom")
    refreshed = re.search(r'data-refreshed="(\d+)"', page)
    check(refreshed is not None and int(refreshed[1]) >= 2, page[:500])
    check_whole(page)
    check_equal(page.count("<main>"), 1)
    check('id="silent" hidden' in page, "it is said that kvd does not answer")


def screenshots():
    """The status page: is drawn in light and in dark, and on a narrow screen"""
    Browser(javascript=True).screenshot("light", 1280, 1800)
    Browser(javascript=True, dark=True).screenshot("dark", 1280, 1800)
    Browser(javascript=False).screenshot("narrow", 420, 1800)


def only_from_here():
    """The status page: names nothing that it would load from elsewhere"""
    for path in ("/", "/style.css", "/live.js"):
        text = get(port_in(SERVER.log()), path).text
        check_equal(re.findall(r"https?://|//[a-z]+\.|url\(|@import", text), [], path)


if __name__ == "__main__":
    try:
        SERVER.start(KVCLI)
        KVCLI.ok("load", "-", stdin=b"".join(b"key%d\t%s\n" % (i, b"v" * (i % 2000)) for i in range(2000)))
        run_cases([only_from_here, without_javascript, with_javascript, screenshots])
    finally:
        SERVER.close()
