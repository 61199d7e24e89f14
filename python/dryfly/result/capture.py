"""What a recorded run has left, read.

Written by conductor/run_recorder.hpp, preload/mpi/call_record.hpp and provider/operation_record.hpp."""

from __future__ import annotations

import json
import struct
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.machine.names import link_name

PROTOCOLS = ("inline", "eager", "rendezvous", "put", "get", "atomic")

_MESSAGE = struct.Struct("<QQQIIBBB5x")
_WAIT = struct.Struct("<QQQ")
_CALL = struct.Struct("<QQQQQ")
_CALL_FORMAT = b"dfcall01"
_COUNTER_STEP = struct.Struct("<IIIxxxxQ")
_OPERATION = struct.Struct("<QQQQII")
_OPERATION_FORMAT = b"dfops001"

# What a rank has asked of libfabric; then what it has seen complete.
OPERATIONS = ("send", "receive", "write", "read", "atomic", "arrived", "sent", "done")


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    called_ps: int
    delivered_ps: int
    bytes: int
    source: int
    target: int
    protocol: str
    hops: int
    on_node: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    name: str
    entered_ps: int
    left_ps: int
    waited_ps: int
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """How much one counter of a NIC has grown in a step."""

    step: int
    node: str
    index: int
    counter: str
    grown: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PortStep:
    """What came in and went out by a port of a switch in a step, acknowledgements included."""

    step: int
    frames_in: int
    bytes_in: int
    frames_out: int
    bytes_out: int


@dataclass(frozen=True, kw_only=True)
class SwitchPort:
    switch: str
    port: int
    leads_to: str  # a switch, or NODE.N
    kind: str  # edge, local, global
    steps: tuple[PortStep, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """A call, or a completion that the rank has seen; both have the number of the operation, 0 where nobody waits.

    `at_ps` counts from the start of virtual time, and is negative for what was before it."""

    kind: str
    at_ps: int
    number: int
    bytes: int
    tag: int
    peer: int


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a cable. Steps are `step_ps` long and begin with virtual time."""

    name: str
    kind: str  # injection, ejection, local, global
    from_group: int
    to_group: int
    busy_ps: tuple[int, ...]
    data_bytes: tuple[int, ...]
    waiting_byte_ps: tuple[int, ...]
    waits: tuple[int, ...]  # frames by how long they waited: none, then powers of two of picoseconds
    longest_wait_ps: int


@dataclass(frozen=True, kw_only=True)
class Capture:
    """Instants count from the start of virtual time."""

    folder: Path
    start_ps: int
    step_ps: int
    call_names: tuple[str, ...]
    links: tuple[Link, ...]
    counter_step_ps: int = 10**6
    counter_names: tuple[str, ...] = ()
    nics: Mapping[int, tuple[str, int]] = field(default_factory=dict)  # by their numbers: node and index
    ports: tuple[SwitchPort, ...] = ()

    def messages(self) -> Iterator[Message]:
        for called, delivered, size, source, target, protocol, hops, on_node in _records(
            self.folder / "messages.bin", _MESSAGE
        ):
            yield Message(
                called_ps=max(called - self.start_ps, 0),
                delivered_ps=delivered - self.start_ps,
                bytes=size,
                source=source,
                target=target,
                protocol=PROTOCOLS[protocol],
                hops=hops,
                on_node=bool(on_node),
            )

    def counted(self) -> Iterator[Counted]:
        if not self.counter_names:
            return
        for step, of, what, grown in _records(self.folder / "counters.bin", _COUNTER_STEP):
            if what < len(self.counter_names):
                node, index = self.nics[of]
                yield Counted(step=step, node=node, index=index, counter=self.counter_names[what], grown=grown)

    def waits(self) -> dict[int, list[tuple[int, int]]]:
        """By rank: when it waited."""
        by_rank: dict[int, list[tuple[int, int]]] = {}
        for begin, end, rank in _records(self.folder / "waits.bin", _WAIT):
            by_rank.setdefault(rank, []).append((begin - self.start_ps, end - self.start_ps))
        return by_rank

    def calls(self, rank: int) -> Iterator[Call]:
        path = self.folder / f"calls-{rank}.bin"
        if not path.is_file():  # a rank that could not write has said so
            return
        for entered, left, waited, size, index in _records(path, _CALL, begin=_CALL_FORMAT):
            yield Call(
                name=self.call_names[index],
                entered_ps=max(entered - self.start_ps, 0),
                left_ps=max(left - self.start_ps, 0),
                waited_ps=waited,
                bytes=size,
            )

    def operations(self, rank: int) -> Iterator[Operation]:
        path = self.folder / f"operations-{rank}.bin"
        if not path.is_file():
            return
        for at, number, size, tag, peer, kind in _records(path, _OPERATION, begin=_OPERATION_FORMAT):
            yield Operation(
                kind=OPERATIONS[kind], at_ps=at - self.start_ps, number=number, bytes=size, tag=tag, peer=peer
            )


def check_target(flag: str, target: str, *, folder: bool) -> None:
    """Before the start: can it be written there?"""
    path = Path(target)
    if path.is_dir() != folder and path.exists():
        raise UserError(f"{flag} {target}: {'a folder is needed' if folder else 'that is a folder; a file is written'}")
    if not path.absolute().parent.is_dir():
        raise UserError(f"{flag} {target}: the folder {path.absolute().parent} does not exist")
    try:
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"{flag} {target}: nothing can be written in {path.absolute().parent}: {reason}") from None


def _records(path: Path, record: struct.Struct, *, begin: bytes = b"") -> Iterator[tuple[Any, ...]]:
    with path.open("rb") as file:
        if file.read(len(begin)) != begin:
            raise RunError(f"the recording {path.name} is damaged", exit_status=70)
        while block := file.read(record.size * 4096):
            yield from record.iter_unpack(block[: len(block) - len(block) % record.size])


def load(folder: Path, node_names: dict[int, str]) -> Capture:
    """`node_names` by the node's number on the machine."""
    path = folder / "recording.json"
    if not path.is_file():
        raise RunError("the run was not recorded (a message above says why)", exit_status=1)
    content = json.loads(path.read_text(encoding="utf-8"))
    steps = array("Q")
    steps.frombytes((folder / "links.bin").read_bytes())
    links = []
    at = 0
    for raw in content["links"]:
        end = at + 3 * raw["steps"]
        links.append(_link(raw, node_names, steps[at:end]))
        at = end
    return Capture(
        folder=folder,
        start_ps=content["start_ps"],
        step_ps=content["step_ps"],
        call_names=tuple(content["calls"]),
        links=tuple(links),
        counter_step_ps=content["counter_step_ps"],
        counter_names=tuple(content["counters"]),
        nics={raw["nic"]: (node_names.get(raw["node"], str(raw["node"])), raw["index"]) for raw in content["nics"]},
        ports=_ports(folder, content, node_names),
    )


def _ports(folder: Path, content: dict[str, Any], node_names: dict[int, str]) -> tuple[SwitchPort, ...]:
    """What a port sends its own link carries, and what it receives the link that the port at the other end drives."""
    names = len(content["counters"])
    carried: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for step, of, what, grown in _records(folder / "counters.bin", _COUNTER_STEP):
        if what >= names:
            carried[of][step][what - names] += grown
    found = []
    for raw in content["ports"]:
        out, into = carried.get(raw["drives"], {}), carried.get(raw["hears"], {})
        steps = tuple(
            PortStep(
                step=step,
                frames_in=into.get(step, [0, 0])[0],
                bytes_in=into.get(step, [0, 0])[1],
                frames_out=out.get(step, [0, 0])[0],
                bytes_out=out.get(step, [0, 0])[1],
            )
            for step in sorted({*out, *into})
        )
        source, target = link_name(raw, node_names).split(">")
        kind = "edge" if raw["kind"] == "ejection" else raw["kind"]
        found.append(SwitchPort(switch=source, port=raw["index"], leads_to=target, kind=kind, steps=steps))
    return tuple(found)


def _link(raw: dict[str, Any], node_names: dict[int, str], steps: array[int]) -> Link:
    return Link(
        name=link_name(raw, node_names),
        kind=raw["kind"],
        from_group=raw["from_group" if "from_group" in raw else "to_group"],
        to_group=raw["to_group" if "to_group" in raw else "from_group"],
        busy_ps=tuple(steps[0::3]),
        data_bytes=tuple(steps[1::3]),
        waiting_byte_ps=tuple(steps[2::3]),
        waits=tuple(raw["waits"]),
        longest_wait_ps=raw["longest_wait_ps"],
    )
