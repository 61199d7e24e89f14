"""Runs steps on a simulated machine by ranks without a program (`dryfly-motif probe`), and reads what they measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dryfly.base.errors import RunError, UserError
from dryfly.base.folder import RunFolder
from dryfly.skeleton import motif
from dryfly.validate.plan import RANKS_OF_NIC, Step
from dryfly.validate.wiring import Wiring

_PS = 1e-12
_GIVEN_UP = re.compile(r"the network has given up a message(?: from NIC (n\d+) to (n\d+))?")  # dryfly-motif's


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Of one step: when it was, and of each of its probes the two times that its kind has, in seconds."""

    begin_s: float
    end_s: float
    times: tuple[tuple[float, float], ...]


Counters = Mapping[str, Mapping[str, int]]  # by NIC, as findings name it, and by name


class Unreachable(RunError):  # noqa: N818
    """The network has given up a message between two NICs, `places`, where it says which: no way is left."""

    def __init__(self, message: str, places: tuple[str, ...]) -> None:
        super().__init__(message, exit_status=1)
        self.places = places


def text_of(steps: Sequence[Step], rank_of: Sequence[int] | None = None) -> str:
    """The file that both probes read. `rank_of`: of each NIC; None: steps name ranks."""
    lines = []
    for step in steps:
        lines.append(f"step {step.kind} {step.size} {step.count}" + (f" {step.rank}" if step.rank > 1 else ""))
        for probe in step.probes:
            a, b = (probe.a, probe.b) if rank_of is None else (rank_of[probe.a], rank_of[probe.b])
            lines.append(f"{a} {b}" + ("" if probe.gpu is None else f" {probe.gpu}"))
    return "\n".join(lines) + "\n"


def parse(text: str, steps: Sequence[Step], rank_of: Sequence[int] | None = None) -> list[Measured]:
    """What a probe has written, which need not have the pairs in the order of the step's. `rank_of` as in text_of."""
    begun: dict[int, tuple[float, float]] = {}
    times: list[dict[int, tuple[float, float]]] = [{} for _ in steps]  # by rank a
    for line in text.splitlines():
        words = line.split()
        if words[0] == "step":
            begun[int(words[1])] = (int(words[2]) * _PS, int(words[3]) * _PS)
        else:
            times[int(words[0])][int(words[1])] = (int(words[3]) * _PS, int(words[4]) * _PS)
    return [
        Measured(
            begin_s=begun[number][0],
            end_s=begun[number][1],
            times=tuple(times[number][each.a if rank_of is None else rank_of[each.a]] for each in step.probes),
        )
        for number, step in enumerate(steps)
    ]


def run(spec: str, wiring: Wiring, nodes: Sequence[int], steps: Sequence[Step], *, network: str) -> list[Measured]:
    """On the machine of a resolved spec. Steps of the node's level have two ranks for each NIC, others one. Raises
    UserError, RunError."""
    found: list[Measured] = []
    for on_node, some in groupby(steps, key=lambda step: step.on_node):
        found += _run(spec, wiring, nodes, list(some), on_node, network)
    return found


def ranks_of_node(wiring: Wiring, nodes: Sequence[int], on_node: str) -> int:
    return len(wiring.nics_of_node[nodes[0]]) * (RANKS_OF_NIC if on_node else 1)


def ranks_of(wiring: Wiring, nodes: Sequence[int], on_node: str) -> list[int] | None:
    """The rank of each NIC, where it has one; None: steps name ranks themselves."""
    if on_node:
        return None
    rank_of = [0] * len(wiring.node_of_nic)
    rank = 0
    for node in nodes:
        for nic in wiring.nics_of_node[node]:
            rank_of[nic] = rank
            rank += 1
    return rank_of


def _run(
    spec: str, wiring: Wiring, nodes: Sequence[int], steps: Sequence[Step], on_node: str, network: str
) -> list[Measured]:
    ppn = ranks_of_node(wiring, nodes, on_node)
    with RunFolder() as folder:
        file, out = folder.path / "steps", folder.path / "measured"
        rank_of = ranks_of(wiring, nodes, on_node)
        file.write_text(text_of(steps, rank_of), encoding="ascii")
        words = [*motif.job(on=nodes, ppn=ppn, level=network), f"file={file}", f"out={out}"]
        if on_node:
            words.append(f"on_node={on_node}")
        try:
            motif.ask(spec, "probe", words)
        except UserError as error:
            given_up = _GIVEN_UP.search(str(error))
            if given_up is None:
                raise
            raise Unreachable(given_up[0], tuple(filter(None, given_up.groups()))) from None
        return parse(out.read_text(encoding="ascii"), steps, rank_of)
