"""kvcli on a pseudo terminal, typed at and read from."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import TIMEOUT_S, Failed, check

# What a terminal acts on and does not show.
CONTROL_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")


class Prompt:
    """Waits for text instead of for time."""

    def __init__(self, kvcli, *arguments, columns=120, **environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [kvcli.binary, *arguments], stdin=slave, stdout=slave, stderr=slave,
            env=kvcli.environment(**environment), preexec_fn=own_terminal)
        os.close(slave)
        self.seen = b""

    def send(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def expect(self, text):
        """What was shown up to and with `text`."""
        wanted = text if isinstance(text, bytes) else text.encode()
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            at = self.seen.find(wanted)
            if at >= 0:
                shown, self.seen = self.seen[:at + len(wanted)], self.seen[at + len(wanted):]
                return shown
            if not self.fill(deadline):
                raise Failed(f"waiting for {wanted!r}, saw {self.seen!r}")

    def fill(self, deadline):
        """More of what was shown; False at its end."""
        ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            more = os.read(self.master, 65536)
        except OSError:  # EIO: the other side is gone
            return False
        self.seen = CONTROL_SEQUENCE.sub(b"", self.seen + more)
        return bool(more)

    def rest(self):
        """What is shown until it ends, and its exit status."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.fill(deadline):
            pass
        return self.seen, self.process.wait(TIMEOUT_S)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(TIMEOUT_S)
        os.close(self.master)


def run_on_terminal(kvcli, *arguments, **environment):
    prompt = Prompt(kvcli, *arguments, **environment)
    try:
        shown, exit_status = prompt.rest()
        check(exit_status is not None)
        return shown, exit_status
    finally:
        prompt.close()
