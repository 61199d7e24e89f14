"""The fabrics that `dryfly serve` keeps up on this computer: how they are found and what they say of themselves.

Each has an abstract unix socket named after its user and itself. Such a socket is no file: it is gone with its
process, however that ends. Whoever connects gets one line of JSON. The peer's user is checked, since anybody could
take the name.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
from dataclasses import asdict, dataclass
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import PRELOAD, PROVIDER, native
from dryfly.base.preloads import users_preloads
from dryfly.machine.load import load
from dryfly.machine.names import NodeNames

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
DEFAULT_NAME = "default"
_ANSWER_WITHIN_S = 5.0
_ANSWER_BYTES_MAX = 2**20


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """What a served fabric says of itself."""

    name: str
    pid: int
    channel: str  # of its conductor
    machine: str  # as it was named: enough to load it again
    sets: tuple[str, ...]

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Fabric:
        values = json.loads(data)
        return cls(**{**values, "sets": tuple(values["sets"])})


def check_name(name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise UserError(f'--name "{name}": accepted is up to 40 letters, digits, ".", "_" and "-"')


def open_door(name: str) -> socket.socket:
    """The listening socket of a new fabric."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        door.bind(_address(name))
    except OSError:
        door.close()
        raise UserError(f'a fabric named "{name}" is served already; --name gives this one another name') from None
    door.listen(64)
    return door


def answer(door: socket.socket, fabric: Fabric) -> None:
    try:
        visitor, _ = door.accept()
    except OSError:
        return
    with visitor:
        visitor.settimeout(_ANSWER_WITHIN_S)
        try:
            visitor.sendall(fabric.to_json())
        except OSError:
            return  # it has gone


def served() -> list[str]:
    """The names of this user's fabrics."""
    prefix = f"@{_address('').decode()[1:]}"
    names = set()
    for line in Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines():
        path = line.split(" ")[-1]
        if path.startswith(prefix) and NAME.fullmatch(path.removeprefix(prefix)):
            names.add(path.removeprefix(prefix))
    return sorted(names)


def find(name: str | None) -> Fabric:
    """The fabric of that name; without a name the one that there is."""
    if name is not None:
        check_name(name)
    names = served()
    if not names:
        raise UserError('no fabric is served; run "dryfly serve" in another terminal')
    if name is None and len(names) > 1:
        raise UserError(f"{len(names)} fabrics are served; --name chooses among {', '.join(names)}")
    if name is not None and name not in names:
        raise UserError(f'no fabric named "{name}" is served; there is {", ".join(names)}')
    return _ask(name if name is not None else names[0])


def environment(fabric: Fabric, node: str) -> dict[str, str]:
    """What makes a program run on that node of the fabric, on top of the caller's environment."""
    machine = load(fabric.machine, sets=fabric.sets)
    names = NodeNames(machine)
    index = int(node) if node.isascii() and node.isdigit() else names.index(node)
    if index is None or not 0 <= index < machine.nodes_max:
        last = machine.nodes_max - 1
        accepted = f"accepted is 0 to {last}, or a name, {names.name(0)} to {names.name(last)}"
        raise UserError(f'--node "{node}": the fabric "{fabric.name}" ({machine.name}) has no such node; {accepted}')
    own = str(native(PRELOAD))
    preloads = [*(each for each in users_preloads(os.environ) if each != own), own]
    return {
        "DRYFLY_FABRIC": fabric.channel,
        "DRYFLY_NODE": str(names.number(index)),
        # The only provider libfabric sees: this path replaces its own folder of plug-ins.
        "FI_PROVIDER_PATH": str(native(PROVIDER).parent),
        "FI_PROVIDER": "cxi",
        "LD_PRELOAD": ":".join(preloads),
    }


def _address(name: str) -> bytes:
    return f"\0dryfly-serve-{os.getuid()}-{name}".encode()


def _ask(name: str) -> Fabric:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
        visitor.settimeout(_ANSWER_WITHIN_S)
        try:
            visitor.connect(_address(name))
            _, user, _ = struct.unpack("iII", visitor.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            data = b""
            while not data.endswith(b"\n") and len(data) < _ANSWER_BYTES_MAX:
                more = visitor.recv(65536)
                if not more:
                    break
                data += more
            fabric = Fabric.from_json(data)
        except (OSError, ValueError, TypeError, KeyError):
            raise UserError(f'the fabric "{name}" does not answer; it is being started, or ends') from None
    if user != os.getuid():
        raise UserError(f'the fabric "{name}" is not yours: somebody else has taken its name')
    return fabric
