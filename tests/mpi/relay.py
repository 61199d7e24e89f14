"""Between a rank and the server of PMI or PMIx that starts it: passes on what they say, and counts it.

    python relay.py FOLDER PROGRAM ARGUMENTS...

FOLDER/RANK is written at the end: messages and bytes of the rank, messages and bytes of the server, and how long the
name of PMI's key space is (0: there is none).
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import subprocess
import sys
from pathlib import Path

_FRAME = 16  # bytes in front of each message of PMIx
_GREETING = 4  # of its server: two words, before the first message


class Counted:
    def __init__(self, *, framed: bool, greetings: int) -> None:
        self.messages = 0
        self.bytes = 0
        self.key_space = 0
        self._framed = framed
        self._greetings = greetings
        self._left = b""

    def take(self, data: bytes) -> None:
        self.bytes += len(data)
        if not self._framed:
            self.messages += data.count(b"\n")
            found = re.search(rb"kvsname=(\S+)", data)
            self.key_space = len(found[1]) if found else self.key_space
            return
        self._left += data
        while (size := self._size()) and len(self._left) >= size:
            self.messages += 1
            self._left = self._left[size:]

    def _size(self) -> int:
        if self._greetings:
            self._greetings -= len(self._left) >= _GREETING
            return _GREETING
        if len(self._left) < _FRAME:
            return 0
        hello = self._left.startswith(b"\xff" * 8)
        return _FRAME + int.from_bytes(self._left[8:12], "little" if hello else "big")


def main(folder: str, program: list[str]) -> int:
    framed = "PMIX_SERVER_URI4" in os.environ
    if framed:
        child, server, client = by_address(program)
    else:
        child, server, client = by_descriptor(program)
    to = {client: server, server: client}
    counted = {
        client: Counted(framed=framed, greetings=0),
        server: Counted(framed=framed, greetings=2 * framed),
    }
    selector = selectors.DefaultSelector()
    for each in to:
        selector.register(each, selectors.EVENT_READ)
    while selector.get_map():
        for key, _ in selector.select():
            source = next(each for each in to if each is key.fileobj)
            data = source.recv(1 << 16)
            if not data or source.fileno() < 0:
                for each in to:
                    selector.unregister(each)
                break
            counted[source].take(data)
            to[source].sendall(data)
    status = child.wait()
    said, heard = counted[client], counted[server]
    rank = os.environ["PMIX_RANK" if framed else "PMI_RANK"]
    Path(folder, rank).write_text(
        f"{said.messages} {said.bytes} {heard.messages} {heard.bytes} {said.key_space}\n", encoding="utf-8"
    )
    return status


def by_descriptor(program: list[str]) -> tuple[subprocess.Popen[bytes], socket.socket, socket.socket]:
    server = socket.socket(fileno=int(os.environ["PMI_FD"]))
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    environment = {**os.environ, "PMI_FD": str(theirs.fileno())}
    child = subprocess.Popen(program, env=environment, close_fds=False)
    theirs.close()
    return child, server, ours


def by_address(program: list[str]) -> tuple[subprocess.Popen[bytes], socket.socket, socket.socket]:
    listening = socket.create_server(("127.0.0.1", 0))
    port = str(listening.getsockname()[1])
    environment = dict(os.environ)
    address = ""
    for name, value in os.environ.items():
        if name.startswith("PMIX_SERVER_URI"):
            before, _, address = value.rpartition(":")
            environment[name] = f"{before}:{port}"
    child = subprocess.Popen(program, env=environment, close_fds=False)
    client = listening.accept()[0]
    return child, socket.create_connection(("127.0.0.1", int(address))), client


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
