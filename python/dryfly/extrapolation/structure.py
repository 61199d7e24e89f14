"""What a program does, as one list of leaves and loops for all ranks at all sizes, and what each leaf was measured at.

It is that of the rank that does most in one recording, the largest with which all others agree: every other rank, and
every rank of the other recordings, has to do the same without what it has no neighbour for. What does not is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from dryfly.extrapolation.fold import Loop, Part, fold
from dryfly.extrapolation.recording import DOWN, UP, Item, MisfitError, Recording
from dryfly.extrapolation.relations import Naming, Slice, Step, namings, slice_of


@dataclass(kw_only=True, eq=False)
class Leaf:
    kind: str
    call: str
    verb: str = ""
    step: Step | None = None  # of a send; of a receive that of its message
    tag: int = 0
    root: int = 0
    slice: Slice | None = None
    seen: dict[int, list[tuple[int, Item]]] = field(
        default_factory=lambda: defaultdict(list)
    )  # by ranks: of which, what

    def peer(self, rank: int, ranks: int) -> int | None:
        assert self.step is not None
        return self.step.target(rank, ranks) if self.kind == "send" else self.step.source(rank, ranks)

    def members(self, ranks: int) -> int:
        """How many take part in a collective."""
        return ranks if self.slice is None else self.slice.count(ranks)

    def fits(self, item: Item, rank: int, ranks: int, tags: Naming) -> bool:
        if item.kind != self.kind:
            return False
        if self.kind == "wait":
            return True
        if self.kind == "collective":
            members = None if self.slice is None else self.slice.members(rank, ranks)
            rooted = self.verb in DOWN | UP and self.slice is None
            return (
                (item.call, item.verb) == (self.call, self.verb)
                and item.members in (members, ())
                and (not rooted or item.root == self.root)
            )
        return item.peer == self.peer(rank, ranks) and tags.tags.get(item.tag, 0) == self.tag


@dataclass(kw_only=True, eq=False)
class Repeat:
    body: list[Node]
    counts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))


Node = Leaf | Repeat


def leaves(nodes: Sequence[Node]) -> Iterator[Leaf]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield node
        else:
            yield from leaves(node.body)


@dataclass(frozen=True, kw_only=True)
class Structure:
    nodes: list[Node]
    is_exact: bool  # each leaf has one size in a recording; else sizes are means


def structure_of(recordings: Sequence[Recording]) -> Structure:
    """Raises MisfitError: the first thing that does not fit the largest recording, where most of the others does."""
    falling = sorted(recordings, key=lambda one: -one.ranks)
    farthest: tuple[float, MisfitError] | None = None
    for is_exact in (True, False):
        for model in falling:
            named = namings(model)
            for naming in named:
                try:
                    nodes = _nodes_of(model, naming, is_exact=is_exact)
                    for recording in falling:
                        _match_all(nodes, recording, naming, is_exact=is_exact)
                    return Structure(nodes=nodes, is_exact=is_exact)
                except _StopsError as stop:
                    if model is falling[0] and (farthest is None or stop.share > farthest[0]):
                        farthest = (
                            stop.share,
                            MisfitError(f"{stop}{_hint(naming, model) if naming is named[0] else ''}"),
                        )
    assert farthest is not None
    raise farthest[1]


def _hint(naming: Naming, model: Recording) -> str:
    """Where a side has two ranks, both neighbours are one, and nothing tells which a message is for."""
    grids = {shape.of(model.ranks) for shape in naming.shapes.values()}
    short = sorted(grid.sides for grid in grids if 2 in grid.sides)
    if not short:
        return ""
    sides = " x ".join(map(str, short[0]))
    return (
        f", or a grid of {sides} is too narrow to tell neighbours apart: record one with three ranks or more on each "
        "side"
    )


class _StopsError(Exception):
    def __init__(self, sentence: str, share: float) -> None:
        super().__init__(sentence)
        self.share = share


def _nodes_of(recording: Recording, naming: Naming, *, is_exact: bool) -> list[Node]:
    busiest = max(range(recording.ranks), key=lambda rank: (len(recording.sequences[rank]), -rank))
    sequence = recording.sequences[busiest]
    tokens: list[Hashable] = []
    made: list[Leaf] = []
    for item in sequence:
        leaf = _leaf(item, busiest, recording, naming)
        made.append(leaf)
        size = item.bytes if is_exact else None
        call = "" if leaf.kind == "wait" else leaf.call
        tokens.append((leaf.kind, call, leaf.verb, leaf.step, leaf.tag, leaf.root, leaf.slice, size))
    return [_node(part, made) for part in fold(tokens)]


def _node(part: Part, made: Sequence[Leaf]) -> Node:
    if isinstance(part, Loop):
        return Repeat(body=[_node(one, made) for one in part.body])
    leaf = made[part]
    return Leaf(
        kind=leaf.kind, call=leaf.call, verb=leaf.verb, step=leaf.step, tag=leaf.tag, root=leaf.root, slice=leaf.slice
    )


def _leaf(item: Item, rank: int, recording: Recording, naming: Naming) -> Leaf:
    if item.kind == "wait":
        return Leaf(kind="wait", call=item.call)
    if item.kind == "collective":
        slice_ = None
        if item.members:
            slice_ = slice_of(item.members, rank, recording.ranks)
            if slice_ is None:
                raise MisfitError(
                    f"{recording.folder}, rank {rank}: {item.call} is over {len(item.members)} of {recording.ranks} "
                    "ranks that are no row, column or plane of a grid"
                )
        root = item.root if item.verb in DOWN | UP and slice_ is None else 0
        return Leaf(kind="collective", call=item.call, verb=item.verb, root=root, slice=slice_)
    step = naming.step(item, rank, recording.ranks)
    return Leaf(kind=item.kind, call=item.call, step=step, tag=naming.tags[item.tag])


def _match_all(nodes: list[Node], recording: Recording, naming: Naming, *, is_exact: bool) -> None:
    for rank in range(recording.ranks):
        _Match(recording, rank, naming, is_exact=is_exact).all(nodes)


class _Match:
    """One rank's sequence against the structure. A loop takes as many iterations as fit."""

    def __init__(self, recording: Recording, rank: int, naming: Naming, *, is_exact: bool) -> None:
        self._recording = recording
        self._rank = rank
        self._naming = naming
        self._is_exact = is_exact
        self._sequence = recording.sequences[rank]
        self._sizes: dict[Leaf, int] = {}
        self._found: list[tuple[Leaf, Item]] = []
        self._counts: list[tuple[Repeat, int]] = []
        self._farthest = 0
        self._expected: Leaf | None = None

    def all(self, nodes: list[Node]) -> None:
        end = self._nodes(nodes, 0)
        if end != len(self._sequence):
            raise _StopsError(self._sentence(), self._farthest / max(len(self._sequence), 1))
        ranks = self._recording.ranks
        for leaf, item in self._found:
            leaf.seen[ranks].append((self._rank, item))
        for repeat, count in self._counts:
            repeat.counts[ranks].append(count)

    def _nodes(self, nodes: Sequence[Node], at: int) -> int | None:
        for node in nodes:
            following = self._leaf(node, at) if isinstance(node, Leaf) else self._repeat(node, at)
            if following is None:
                return None
            at = following
        return at

    def _leaf(self, leaf: Leaf, at: int) -> int | None:
        ranks = self._recording.ranks
        if leaf.step is not None and leaf.peer(self._rank, ranks) is None:
            return at
        item = self._sequence[at] if at < len(self._sequence) else None
        if item is not None and leaf.fits(item, self._rank, ranks, self._naming):
            is_new = leaf not in self._sizes
            if not self._is_exact or self._sizes.setdefault(leaf, item.bytes) == item.bytes:
                self._found.append((leaf, item))
                return at + 1
            assert not is_new
        if leaf.kind == "wait":  # nothing was open
            return at
        if at >= self._farthest:
            self._farthest, self._expected = at, leaf
        return None

    def _repeat(self, repeat: Repeat, at: int) -> int:
        count = 0
        while True:
            found, counts = len(self._found), len(self._counts)
            following = self._nodes(repeat.body, at)
            if following is None or following == at:
                del self._found[found:]
                del self._counts[counts:]
                break
            at = following
            count += 1
        if count or self._has_part(repeat.body):
            self._counts.append((repeat, count))
        return at

    def _has_part(self, nodes: Sequence[Node]) -> bool:
        """Does this rank do any of that?"""
        ranks = self._recording.ranks
        return any(leaf.step is None or leaf.peer(self._rank, ranks) is not None for leaf in leaves(nodes))

    def _sentence(self) -> str:
        place = self._farthest
        ranks = self._recording.ranks
        before = sum(one.kind == "collective" for one in self._sequence[:place])
        phase = f"behind collective {before}" if before else "before the first collective"
        wanted = "the end" if self._expected is None else _said(self._expected, self._rank, ranks)
        got = "the end" if place >= len(self._sequence) else _said(self._sequence[place], self._rank, ranks)
        return (
            f"{self._recording.folder}, rank {self._rank} of {ranks}, {phase}: {got} where the other ranks and sizes "
            f"have {wanted}; the program's structure is not the same at all sizes"
        )


def _said(one: Leaf | Item, rank: int, ranks: int) -> str:
    if one.kind == "wait":
        return f"{one.call} that completes messages"
    if one.kind == "collective":
        of = ""
        if isinstance(one, Item) and one.members is not None:
            of = f" over {len(one.members)} ranks"
        return f"{one.call}{of} (root {one.root})" if one.verb in DOWN | UP else f"{one.call}{of}"
    peer = one.peer(rank, ranks) if isinstance(one, Leaf) else one.peer
    size = f" of {one.bytes} B" if isinstance(one, Item) else ""
    return f"{one.call}{size} {'to' if one.kind == 'send' else 'from'} rank {peer}"
