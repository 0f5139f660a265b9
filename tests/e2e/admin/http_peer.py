"""HTTP as a client that may misbehave speaks it."""

import re
import socket

from harness import Failed

TIMEOUT_S = 60  # against hangs only


class Reply:
    def __init__(self, raw):
        head, separator, self.body = raw.partition(b"\r\n\r\n")
        if not separator:
            raise Failed(f"no reply, but {raw[:200]!r}")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value for name, value in
                        (line.split(": ", 1) for line in lines[1:])}

    @property
    def text(self):
        return self.body.decode()


def port_in(log):
    """Where a kvd with --admin=0 says that it listens."""
    found = re.search(r"admin endpoint: http://127\.0\.0\.1:(\d+)/", log)
    if not found:
        raise Failed("kvd does not say where its admin endpoint is:\n" + log)
    return int(found.group(1))


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S, source_address=(source, 0))


def read_all(peer):
    """What comes until the server closes, also where it does so with a reset."""
    parts = []
    try:
        while part := peer.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def ask(port, raw):
    with connect(port) as peer:
        peer.sendall(raw)
        return Reply(read_all(peer))


def get(port, path, method="GET", **headers):
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return ask(port, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode())
