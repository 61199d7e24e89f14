"""`--trace`: a recorded run as a Perfetto trace (https://ui.perfetto.dev).

The format is protocol buffers: each packet names its fields by numbers, which perfetto_trace.proto defines. Only a
dozen of them are needed, so they are written here; the tests read them back by Perfetto's own definitions. Time is in
whole nanoseconds there, so what takes less than one may have no length.
"""

from __future__ import annotations

import heapq
import itertools
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from dryfly.base.errors import RunError
from dryfly.base.files import write_whole_by
from dryfly.result.capture import Call, Capture, Link, Message

LINKS_MAX = 1000  # counters in a trace; those of the links that carried most

# Numbers of perfetto_trace.proto.
_PACKET = 1
_TIMESTAMP, _SEQUENCE, _EVENT, _TRACK = 8, 10, 11, 60
_UUID, _NAME, _PROCESS, _PARENT, _COUNTER = 1, 2, 3, 5, 8
_PID, _PROCESS_NAME = 1, 6
_UNIT_NAME = 6
_TYPE, _EVENT_TRACK, _EVENT_NAME, _DOUBLE_VALUE, _ANNOTATION = 9, 11, 23, 44, 4
_ANNOTATION_NAME, _ANNOTATION_UINT = 10, 3
_BEGIN, _END, _VALUE = 1, 2, 4

_RANKS, _NICS, _LINKS = 1, 2, 3  # the three processes of the trace


def write(capture: Capture, target: str, *, rank_names: list[str], nic_names: list[str]) -> None:
    """`rank_names` and `nic_names` (the NIC a rank uses) by rank."""

    def fill(file: BinaryIO) -> None:
        for packet in _packets(capture, rank_names, nic_names):
            file.write(_field(_PACKET, packet))

    try:
        write_whole_by(Path(target), fill)
    except OSError as error:
        raise RunError(f"the trace cannot be written to {target}: {error.strerror}", exit_status=1) from None


def _packets(capture: Capture, rank_names: list[str], nic_names: list[str]) -> Iterator[bytes]:
    tracks = itertools.count(10)
    for uuid, name in ((_RANKS, "ranks: MPI calls"), (_NICS, "NICs: messages"), (_LINKS, "links: busy share")):
        yield _process(uuid, name)
    waits = capture.waits()
    for rank, name in enumerate(rank_names):
        uuid = next(tracks)
        yield _track(uuid, f"rank {rank} on {name}", parent=_RANKS)
        yield from _calls(uuid, capture.calls(rank), waits.get(rank, []))
    by_nic: dict[str, list[Message]] = {}
    for message in capture.messages():
        by_nic.setdefault(nic_names[message.source], []).append(message)
    for nic in sorted(by_nic):
        yield from _messages(nic, by_nic[nic], tracks)
    busiest = sorted(capture.links, key=lambda link: (-sum(link.data_bytes), link.name))[:LINKS_MAX]
    for link in sorted(busiest, key=lambda link: (link.kind, link.name)):
        yield from _link(next(tracks), link, capture.step_ps)


def _calls(uuid: int, calls: Iterable[Call], waits: list[tuple[int, int]]) -> Iterator[bytes]:
    """A slice for each call, and in it one for each time it waited."""
    pending = iter(waits)
    wait = next(pending, None)
    for call in calls:
        yield _begin(uuid, call.entered_ps, call.name, bytes=call.bytes, waited_ns=call.waited_ps // 1000)
        while wait is not None and wait[0] < call.left_ps:
            if wait[0] >= call.entered_ps:
                yield _begin(uuid, wait[0], "waiting")
                yield _end(uuid, min(wait[1], call.left_ps))
            wait = next(pending, None)
        yield _end(uuid, call.left_ps)


def _messages(nic: str, messages: list[Message], tracks: Iterator[int]) -> Iterator[bytes]:
    """From the call to delivery, on the sender's NIC. Messages that overlap go to lanes of their own."""
    free: list[tuple[int, int]] = []  # lanes by the end of their last message
    for message in sorted(messages, key=lambda message: (message.called_ps, message.delivered_ps, message.target)):
        if free and free[0][0] <= message.called_ps:
            _, lane = heapq.heappop(free)
        else:
            lane = next(tracks)
            yield _track(lane, f"NIC {nic}", parent=_NICS)
        name = f"{message.protocol} to {message.target}"
        yield _begin(lane, message.called_ps, name, bytes=message.bytes, source=message.source, hops=message.hops)
        yield _end(lane, message.delivered_ps)
        heapq.heappush(free, (message.delivered_ps, lane))


def _link(uuid: int, link: Link, step_ps: int) -> Iterator[bytes]:
    counter = _field(_COUNTER, _field(_UNIT_NAME, b"%"))
    yield _track(uuid, f"{link.kind} {link.name}", parent=_LINKS, more=counter)
    before = None
    for step, busy_ps in enumerate((*link.busy_ps, 0)):
        share = round(100 * busy_ps / step_ps, 2)
        if share != before:
            yield _event(uuid, step * step_ps, _VALUE, _double(_DOUBLE_VALUE, share))
        before = share


# Packets.


def _process(uuid: int, name: str) -> bytes:
    about = _number(_PID, uuid) + _field(_PROCESS_NAME, name.encode())
    return _field(_TRACK, _number(_UUID, uuid) + _field(_PROCESS, about))


def _track(uuid: int, name: str, *, parent: int, more: bytes = b"") -> bytes:
    return _field(_TRACK, _number(_UUID, uuid) + _field(_NAME, name.encode()) + _number(_PARENT, parent) + more)


def _begin(uuid: int, at_ps: int, name: str, **facts: int) -> bytes:
    content = _field(_EVENT_NAME, name.encode())
    for key, value in facts.items():
        annotation = _field(_ANNOTATION_NAME, key.encode()) + _number(_ANNOTATION_UINT, value)
        content += _field(_ANNOTATION, annotation)
    return _event(uuid, at_ps, _BEGIN, content)


def _end(uuid: int, at_ps: int) -> bytes:
    return _event(uuid, at_ps, _END, b"")


def _event(uuid: int, at_ps: int, kind: int, content: bytes) -> bytes:
    event = _number(_TYPE, kind) + _number(_EVENT_TRACK, uuid) + content
    return _number(_TIMESTAMP, at_ps // 1000) + _number(_SEQUENCE, 1) + _field(_EVENT, event)


# Protocol buffers.


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
