"""A structure and its fits become a skeleton in Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dryfly.extrapolation.fits import OF_COLLECTIVE, Fit, fit, rounds
from dryfly.extrapolation.recording import DOWN, PS, Item, Recording
from dryfly.extrapolation.relations import Slice, Step
from dryfly.extrapolation.structure import Leaf, Node, Repeat, Structure, leaves

_US = 1e-6
_SMALL_S = 1e-9  # work that is not worth a word
_SMALL_SHARE = 0.005


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A fit, and how often a rank does what it is of: the counts of the loops around it."""

    what: str  # counts, sizes, work
    of: str
    fit: Fit
    by: Slice | None  # it grows with these ranks' number; None: with that of all
    around: tuple[Fit, ...]

    def at(self, ranks: int) -> float:
        return self.fit.at(ranks if self.by is None else self.by.count(ranks))

    def doubt(self, ranks: int) -> float:
        """What the error of the fit comes to in a rank at that size: seconds of work, bytes, or iterations."""
        return abs(self.at(ranks)) * self.fit.error * math.prod(one.at(ranks) for one in self.around)


@dataclass(kw_only=True)
class Phase:
    """What stands between two others: a loop that is in no loop, or the calls between such loops."""

    name: str
    nodes: list[Node]
    fits: list[Fitted] = field(default_factory=list)

    def worst(self, what: str) -> Fitted | None:
        """The largest error. None: there is nothing of that kind."""
        return max((one for one in self.fits if one.what == what), key=lambda one: one.fit.error, default=None)


@dataclass(frozen=True, kw_only=True)
class Written:
    text: str
    phases: Sequence[Phase]


def phases_of(structure: Structure) -> list[Phase]:
    phases: list[Phase] = []
    loose: list[Node] = []
    for node in structure.nodes:
        if isinstance(node, Repeat):
            _close(phases, loose)
            phases.append(_phase(len(phases) + 1, [node]))
            loose = []
        else:
            loose.append(node)
    _close(phases, loose)
    return phases


def _close(phases: list[Phase], loose: list[Node]) -> None:
    if loose:
        phases.append(_phase(len(phases) + 1, loose))


def _phase(number: int, nodes: list[Node]) -> Phase:
    calls = list(dict.fromkeys(leaf.call.removeprefix("MPI_") for leaf in leaves(nodes)))
    shown = ", ".join(calls[:4]) + (" ..." if len(calls) > 4 else "")
    loop = "loop: " if isinstance(nodes[0], Repeat) else ""
    return Phase(name=f"{number} {loop}{shown}", nodes=nodes)


def write(structure: Structure, recordings: Sequence[Recording]) -> Written:
    writer = _Writer(recordings)
    phases = phases_of(structure)
    for phase in phases:
        writer.phase(phase)
    return Written(text=writer.text(), phases=phases)


class _Writer:
    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = recordings
        self._steps: dict[Step, str] = {}
        self._slices: dict[Slice, str] = {}
        self._lines: list[str] = []
        self._phase: Phase | None = None
        self._around: list[Fit] = []

    def phase(self, phase: Phase) -> None:
        self._phase = phase
        self._lines += ["", f'    me.phase("{phase.name}")']
        self._nodes(phase.nodes, 1)

    def text(self) -> str:
        first = self._recordings[0]
        sizes = ", ".join(str(one.ranks) for one in self._recordings)
        used = [one.shape for one in self._steps] + [one.shape for one in self._slices]
        shapes = list(dict.fromkeys(used))
        names = {shape: f"GRID_{number}" for number, shape in enumerate(shapes, 1)}
        body = "\n".join(self._lines)
        head = [
            f'"""Skeleton of {first.program}, extrapolated from recordings at {sizes} ranks.',
            "",
            f"Recorded on {first.machine} with {first.library}, --compute {first.compute}. `p` is the number of ranks.",
            "Behind a number that was fitted stands what was recorded, by ranks, and its error at a size left out.",
            '"""',
            "",
            *(["from math import log2", ""] if "log2(" in body else []),
            f"from dryfly.extrapolation.verbs import {', '.join(self._imports(body))}",
            *([""] if shapes else []),
            *(f"{names[one]} = Shape(dimensions={one.dimensions}, ascending={one.ascending})" for one in shapes),
            *(
                f"{name} = Step(shape={names[step.shape]}, offset={step.offset}, closed={step.closed})"
                for step, name in self._steps.items()
            ),
            *(f"{name} = Slice(shape={names[one.shape]}, axes={one.axes})" for one, name in self._slices.items()),
            "",
            "",
            "def program(me):",
            *(["    p = me.size"] if _uses_ranks(body) else []),
            "    rank = Verbs(me)",
        ]
        return "\n".join(head) + "\n" + body.lstrip("\n") + "\n"

    def _imports(self, body: str) -> list[str]:
        wanted = {"Shape": bool(self._steps or self._slices), "Slice": bool(self._slices), "Step": bool(self._steps)}
        return [
            *(name for name, is_wanted in wanted.items() if is_wanted),
            "Verbs",
            *(name for name in ("rounds", "whole") if f"{name}(" in body),
        ]

    def _nodes(self, nodes: Sequence[Node], depth: int) -> None:
        for node in nodes:
            if isinstance(node, Leaf):
                self._leaf(node, depth)
            else:
                self._repeat(node, depth)

    def _repeat(self, repeat: Repeat, depth: int) -> None:
        means = {ranks: sum(its) / len(its) for ranks, its in repeat.counts.items() if its}
        found = self._fit("counts", f"the loop of {next(leaves(repeat.body)).call}", means)
        bound = (
            found.text() if found.term is None and found.constant == round(found.constant) else f"whole({found.text()})"
        )
        self._put(depth, f"for _ in range({bound}):", found, means)
        self._around.append(found)
        self._nodes(repeat.body, depth + 1)
        self._around.pop()

    def _leaf(self, leaf: Leaf, depth: int) -> None:
        words = []
        fits: list[tuple[Fit, dict[int, float]]] = []
        if leaf.kind in ("send", "receive"):
            assert leaf.step is not None
            words.append(self._steps.setdefault(leaf.step, f"STEP_{len(self._steps) + 1}"))
        if leaf.kind == "collective":
            words.append(f'"{leaf.verb}"')
        if leaf.kind == "send" or (leaf.kind == "collective" and leaf.verb != "barrier"):
            means = {ranks: _mean([one.bytes for _, one in its]) for ranks, its in leaf.seen.items()}
            found = self._fit("sizes", f"the size of {leaf.call}", means)
            fits.append((found, means))
            words.append(found.text())
        if leaf.root:
            words.append(f"root={leaf.root}")
        if leaf.slice is not None:
            words.append(f"of={self._slices.setdefault(leaf.slice, f'SLICE_{len(self._slices) + 1}')}")
        if leaf.kind in ("send", "receive"):
            if leaf.tag:
                words.append(f"tag={leaf.tag}")
            waits = max(
                (-1 if one.waits is None else one.waits for its in leaf.seen.values() for _, one in its), default=0
            )
            if waits != 0:
                words.append(f"waits={waits if waits >= 0 else None}")
        work = {ranks: _work_s(leaf, ranks, its) for ranks, its in leaf.seen.items()}
        if max(abs(one) for one in work.values()) >= _SMALL_S:
            found = self._work(leaf, work)
            fits.append((found, {ranks: one / _US for ranks, one in work.items()}))
            name = "p" if leaf.slice is None else f"{self._slices[leaf.slice]}.count(p)"
            text = found.text(unit=_US, name=name)
            words.append(f"work={text}e-6" if found.term is None else f"work=({text}) * 1e-6")
            behind = _behind(leaf) if leaf.kind == "wait" else 0.0
            words += [f"behind={behind:.2g}"] if behind >= _SMALL_SHARE else []
        said = "; ".join(text for text in (_said(found, means) for found, means in fits) if text)
        self._lines.append("    " * depth + f"rank.{leaf.kind}({', '.join(words)})" + (f"  # {said}" if said else ""))

    def _work(self, leaf: Leaf, work: dict[int, float]) -> Fit:
        """Of a collective by the number of its members."""
        of = f"the work before {leaf.call}"
        if leaf.kind != "collective":
            return self._fit("work", of, work)
        by_count: dict[int, list[float]] = {}
        for ranks, one in work.items():
            by_count.setdefault(leaf.members(ranks), []).append(one)
        found = fit({count: _mean(its) for count, its in by_count.items()}, OF_COLLECTIVE)
        return self._keep("work", of, found, leaf.slice)

    def _fit(self, what: str, of: str, means: dict[int, float]) -> Fit:
        return self._keep(what, of, fit(means), None)

    def _keep(self, what: str, of: str, found: Fit, by: Slice | None) -> Fit:
        assert self._phase is not None
        self._phase.fits.append(Fitted(what=what, of=of, fit=found, by=by, around=tuple(self._around)))
        return found

    def _put(self, depth: int, line: str, found: Fit, means: dict[int, float]) -> None:
        said = _said(found, means)
        self._lines.append("    " * depth + line + (f"  # {said}" if said else ""))


def _said(found: Fit, means: dict[int, float]) -> str:
    """Nothing where it is the same at every size."""
    if found.term is None and found.error == 0.0:
        return ""
    return ", ".join(f"{ranks}: {value:.4g}" for ranks, value in sorted(means.items())) + f", {100 * found.error:.2g} %"


def _uses_ranks(body: str) -> bool:
    return any(mark in body for mark in ("* p", "(p)"))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _work_s(leaf: Leaf, ranks: int, seen: Sequence[tuple[int, Item]]) -> float:
    """Means over the ranks; at a collective of the rank that has most, because the others wait for it. Down a tree
    ranks wait for each other in a row, each as long as one takes that only receives."""
    by_rank: dict[int, list[int]] = {}
    for rank, one in seen:
        by_rank.setdefault(rank, []).append(one.before_ps + one.after_ps)
    means = [_mean(its) for its in by_rank.values()]
    if leaf.kind != "collective":
        return _mean(means) * PS
    ends = [one.before_ps + one.after_ps for _, one in seen if one.messages == 1]
    if leaf.verb in DOWN and ends:
        return max(rounds(leaf.members(ranks)) * _mean(ends), max(means)) * PS
    return max(means) * PS


def _behind(leaf: Leaf) -> float:
    """Over all sizes: how much of the work comes when the rank has waited depends on who is late."""
    items = [one for its in leaf.seen.values() for _, one in its]
    after = sum(one.after_ps for one in items)
    whole = after + sum(one.before_ps for one in items)
    return min(max(after / whole, 0.0), 1.0) if whole > 0 else 0.0
