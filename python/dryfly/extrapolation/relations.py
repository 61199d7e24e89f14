"""Whom a rank talks to, said without numbers of ranks: a step in a grid, or the ranks of a line or a plane of it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from dryfly.extrapolation.grid import Offset, Shape
from dryfly.extrapolation.recording import Item, Recording

SHAPES = tuple(
    Shape(dimensions=dimensions, ascending=ascending)
    for dimensions in (1, 2, 3)
    for ascending in (False, True)
    if dimensions > 1 or not ascending
)
_KEPT_TAGS = 64


@dataclass(frozen=True, kw_only=True)
class Step:
    """To the rank so many places on; `closed`: 1 for dimensions that go round."""

    shape: Shape
    offset: Offset
    closed: Offset

    def target(self, rank: int, ranks: int) -> int | None:
        """None: there is none, or it is the rank itself, to which no message goes by the network."""
        found = self.shape.of(ranks).neighbour(rank, self.offset, self.closed)
        return None if found == rank else found

    def source(self, rank: int, ranks: int) -> int | None:
        found = self.shape.of(ranks).neighbour(rank, tuple(-one for one in self.offset), self.closed)
        return None if found == rank else found


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The ranks that differ from one in the places of these axes only."""

    shape: Shape
    axes: tuple[int, ...]

    def count(self, ranks: int) -> int:
        sides = self.shape.of(ranks).sides
        return math.prod(sides[axis] for axis in self.axes)

    def members(self, rank: int, ranks: int) -> tuple[int, ...]:
        grid = self.shape.of(ranks)
        here = grid.place(rank)
        places = [here]
        for axis in self.axes:
            places = [(*one[:axis], there, *one[axis + 1 :]) for one in places for there in range(grid.sides[axis])]
        return tuple(sorted(grid.rank(place) for place in places))


@dataclass(frozen=True, kw_only=True)
class Naming:
    """How the messages of each tag are named: in which grid, and which of its steps go round."""

    shapes: Mapping[str, Shape]
    tags: Mapping[str, int]  # a small number for each; the same for all where there are many
    closed: Mapping[tuple[Shape, str, Offset], Offset]

    def step(self, item: Item, rank: int, ranks: int) -> Step:
        source, target = (rank, item.peer) if item.kind == "send" else (item.peer, rank)
        shape = self.shapes[item.tag]
        offset, _ = shape.of(ranks).offset(source, target)
        return Step(shape=shape, offset=offset, closed=self.closed[shape, item.tag, offset])


def namings(recording: Recording) -> list[Naming]:
    """The likeliest first: the grid in which the messages of a tag need fewest steps, then each grid for all."""
    sends: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for rank, sequence in enumerate(recording.sequences):
        for item in sequence:
            if item.kind == "send":
                sends[item.tag].append((rank, item.peer))
            elif item.kind == "receive":
                sends.setdefault(item.tag, [])
    pairs = {tag: sorted(set(its)) for tag, its in sends.items()}
    if len(pairs) > _KEPT_TAGS:
        together = sorted({pair for its in pairs.values() for pair in its})
        pairs = dict.fromkeys(pairs, together)
        tags = dict.fromkeys(pairs, 0)
    else:
        tags = {tag: number for number, tag in enumerate(sorted(pairs))}
    scores = {tag: {shape: _score(shape, its, recording.ranks) for shape in SHAPES} for tag, its in pairs.items()}
    best = {tag: min(its.values()) for tag, its in scores.items()}
    popular = Counter(shape for tag, its in scores.items() for shape, score in its.items() if score == best[tag])
    order = sorted(SHAPES, key=lambda shape: (-popular[shape], SHAPES.index(shape)))
    found = [
        {tag: next(shape for shape in order if its[shape] == best[tag]) for tag, its in scores.items()},
        *(dict.fromkeys(pairs, shape) for shape in SHAPES),
    ]
    made = []
    for shapes in found:
        closed = {
            (shape, tag, offset): wraps
            for tag, shape in shapes.items()
            for offset, wraps in _steps(shape, pairs[tag], recording.ranks).items()
        }
        one = Naming(shapes=shapes, tags=tags, closed=closed)
        if one not in made:
            made.append(one)
    return made


def _steps(shape: Shape, pairs: Sequence[tuple[int, int]], ranks: int) -> dict[Offset, Offset]:
    """Each step that there is, and in which dimensions it goes round."""
    grid = shape.of(ranks)
    steps: dict[Offset, Offset] = {}
    for source, target in pairs:
        offset, wraps = grid.offset(source, target)
        before = steps.get(offset, wraps)
        steps[offset] = tuple(max(one, other) for one, other in zip(before, wraps, strict=True))
    return steps


def _score(shape: Shape, pairs: Sequence[tuple[int, int]], ranks: int) -> int:
    """How many steps there are; those count double that some rank could take and does not."""
    steps = _steps(shape, pairs, ranks)
    there = set(pairs)
    score = 0
    for offset, closed in steps.items():
        step = Step(shape=shape, offset=offset, closed=closed)
        targets = [(rank, step.target(rank, ranks)) for rank in range(ranks)]
        score += 1 if all(target is None or (rank, target) in there for rank, target in targets) else 2
    return score


def slice_of(members: tuple[int, ...], rank: int, ranks: int) -> Slice | None:
    """None: the ranks are no line and no plane of a grid."""
    for shape in SHAPES[1:]:
        for many in range(1, shape.dimensions):
            for axes in combinations(range(shape.dimensions), many):
                one = Slice(shape=shape, axes=axes)
                if one.members(rank, ranks) == members:
                    return one
    return None
