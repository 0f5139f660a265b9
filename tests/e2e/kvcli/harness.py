"""A kvd of its own for a test, kvcli runs against it, and the lines that tests/run.sh counts."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TIMEOUT_S = 120  # against hangs only; nothing here takes a second


class Skipped(Exception):
    """The test case cannot run here; says why."""


class Failed(Exception):
    """The test case failed; says how."""


def check(condition, *what):
    if not condition:
        raise Failed(" ".join(str(part) for part in what))


def check_equal(actual, expected, *what):
    check(actual == expected, *what, "\n  got      ", repr(actual)[:2000],
          "\n  expected ", repr(expected)[:2000])


class Server:
    """A kvd process on a fresh socket."""

    def __init__(self, binary, *flags):
        self.directory = tempfile.mkdtemp(prefix="kvd.", dir="/tmp")
        self.socket = os.path.join(self.directory, "kvd.sock")
        self.target = "shm:" + self.socket
        self.log_path = os.path.join(self.directory, "kvd.log")
        self.command = [binary, "--shm=" + self.socket, *flags]
        self.process = None

    def start(self, kvcli):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        deadline = time.monotonic() + TIMEOUT_S
        while kvcli.run("ping", "--deadline=5s").exit != 0:
            check(self.process.poll() is None, "kvd ended:\n", self.log())
            check(time.monotonic() < deadline, "kvd does not serve:\n", self.log())

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def stop(self, number=signal.SIGKILL):
        if self.process is None:
            return
        self.process.send_signal(number)
        self.process.wait(TIMEOUT_S)
        self.process = None

    def close(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)


class Result:
    def __init__(self, exit_status, out, err):
        self.exit = exit_status
        self.out = out
        self.err = err.decode(errors="replace")


class Kvcli:
    """Runs the binary; bytes in, bytes out."""

    def __init__(self, binary, target):
        self.binary = binary
        self.target = target

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KVCLI_")}
        leaks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "leaks.supp")
        return {**kept, "KVCLI_SERVER": self.target, "TERM": "xterm",
                "LSAN_OPTIONS": f"suppressions={leaks}:print_suppressions=0", **more}

    def start(self, *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **environment):
        return subprocess.Popen([self.binary, *arguments], stdin=stdin, stdout=stdout,
                                stderr=subprocess.PIPE, env=self.environment(**environment))

    def run(self, *arguments, stdin=None, stdout=subprocess.PIPE, **environment):
        if isinstance(stdin, bytes):
            feed = {"input": stdin}
        else:
            feed = {"stdin": stdin if stdin is not None else subprocess.DEVNULL}
        done = subprocess.run([self.binary, *arguments], stdout=stdout, stderr=subprocess.PIPE,
                              env=self.environment(**environment), timeout=TIMEOUT_S, check=False,
                              **feed)
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments, **keywords):
        """The output of a run that has to succeed."""
        result = self.run(*arguments, **keywords)
        check(result.exit == 0, arguments, "exits with", result.exit, "and says", result.err)
        return result.out


def seeded_random():
    given = os.environ.get("KVD_TEST_SEED")
    seed = int(given, 0) if given else random.SystemRandom().getrandbits(32)
    print(f"KVD_TEST_SEED={seed}", flush=True)
    return random.Random(seed)


def run_cases(cases):
    """Runs functions, named by the first line of their documentation; exits."""
    failures = 0
    for case in cases:
        name = case.__doc__.strip().splitlines()[0]
        try:
            case()
            print(f"KVD_CASE passed {name}", flush=True)
        except Skipped as reason:
            print(f"KVD_CASE skipped {name}: {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failures += 1
            traceback.print_exc(file=sys.stdout)
            print(f"KVD_CASE failed {name}", flush=True)
    sys.exit(1 if failures else 0)
