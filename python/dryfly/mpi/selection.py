"""Which algorithm of a collective an MPI library takes, from the files by which its users tune it.

MPICH reads a tree in JSON (MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE), Open MPI numbers in lines
(coll_tuned_dynamic_rules_filename) or, from 6.0 on, JSON. Here they become rules for skeletons, a line each:
docs/model/collectives.md#selection. What a file says of calls that skeletons do not make is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError

COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "allgather", "allgatherv", "reduce_scatter",
               "reduce_scatter_block", "alltoall", "gather", "scatter")  # fmt: skip

# MPICH's name of an algorithm, behind "MPIR_Collective_intra_", and ours.
_MPICH: Mapping[str, Mapping[str, str]] = {
    "barrier": {"k_dissemination": "dissemination", "dissemination": "dissemination", "smp": "hierarchical"},
    "bcast": {
        "binomial": "binomial",
        "smp": "hierarchical",
        "scatter_recursive_doubling_allgather": "scatter_recursive_doubling",
        "scatter_ring_allgather": "scatter_ring",
    },
    "reduce": {"binomial": "binomial", "reduce_scatter_gather": "rabenseifner", "smp": "hierarchical"},
    "allreduce": {
        "recursive_doubling": "recursive_doubling",
        "reduce_scatter_allgather": "rabenseifner",
        "ring": "ring",
        "smp": "hierarchical",
    },
    "allgather": {"recursive_doubling": "recursive_doubling", "brucks": "bruck", "ring": "ring"},
    "allgatherv": {
        "recursive_doubling": "recursive_doubling",
        "brucks": "bruck",
        "ring": "ring segment=32768",
    },
    "reduce_scatter": {"recursive_halving": "recursive_halving", "pairwise": "pairwise"},
    "reduce_scatter_block": {"recursive_halving": "recursive_halving", "pairwise": "pairwise"},
    "alltoall": {"brucks": "bruck", "scattered": "scattered window=32", "pairwise": "exclusive"},
    "gather": {"binomial": "binomial"},
    "scatter": {"binomial": "binomial"},
}

# Open MPI's numbers (coll_tuned_COLLECTIVE_algorithm) and ours; "": 0 leaves it to the library.
_OPENMPI: Mapping[str, Sequence[str]] = {
    "barrier": ("", "linear", "double_ring", "recursive_doubling", "dissemination", "recursive_doubling", "tree"),
    "bcast": ("", "linear", "chain", "chain fan=1", "split_binary", "binary", "distance_binomial", "knomial",
              "scatter_recursive_doubling", "scatter_ring"),
    "reduce": ("", "linear", "chain", "pipeline", "binary", "binomial", "in_order_binary", "rabenseifner_halves"),
    "allreduce": ("", "reduce_bcast", "reduce_bcast", "recursive_doubling", "ring", "ring", "rabenseifner_halves"),
    "allgather": ("", "gather_bcast", "bruck", "recursive_doubling", "ring", "neighbour", "ring"),
    "allgatherv": ("", "gather_bcast", "bruck", "ring", "neighbour", "ring"),
    "reduce_scatter": ("", "reduce_then_scatter", "recursive_halving", "ring", "butterfly"),
    "reduce_scatter_block": ("", "reduce_then_scatter", "recursive_doubling", "recursive_halving", "butterfly"),
    "alltoall": ("", "scattered", "pairwise", "bruck", "scattered", "pairwise"),
    "gather": ("", "linear", "binomial", "asked"),
    "scatter": ("", "linear", "binomial", "linear_at_once"),
}  # fmt: skip
# By the numbers that Open MPI's rules files give collectives.
_OPENMPI_NUMBERS = ("allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast",
                    "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan",
                    "scatter", "scatterv", "neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall",
                    "neighbor_alltoallv", "neighbor_alltoallw")  # fmt: skip
# What Open MPI's decisions count for these is that of all ranks together.
_TOTAL = {"reduce_scatter"}

# Conditions of MPICH's on a call as skeletons make it: of built-in, commutative operations, out of place, within one
# communicator, of ranks in the order of their nodes.
_MPICH_FACTS = {
    "comm_type": "intra",
    "is_commutative": "yes",
    "is_op_built_in": "yes",
    "is_sendbuf_inplace": "no",
    "is_block_regular": "yes",
    "is_node_consecutive": "yes",
}
# These are known when a communicator is made; what MPICH's search meets below any other, it takes "<" of for "<=".
_KNOWN_EARLY = {"collective", "comm_type", "comm_size", "comm_hierarchy"}
_HIERARCHIES = {"parent": "hierarchy=yes", "flat": "hierarchy=no", "node": None, "node_roots": None}
_MPICH_NUMBERS = {"comm_size": "ranks", "avg_msg_size": "bytes", "total_msg_size": "total"}


@dataclass(frozen=True)
class _Branch:
    """On the way down MPICH's tree."""

    collective: str
    conditions: tuple[str, ...] = ()
    early: bool = True
    where: str = ""


def mpich_rules(file: Path) -> str:
    """Of a tuning file for MPICH."""
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{file} is no JSON: {error}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{file}: accepted is an object with keys collective=NAME")
    lines: list[str] = []
    for key, below in tree.items():
        name, _, value = key.partition("=")
        if name != "collective":
            raise UserError(f"{file}: {key}: accepted is collective=NAME")
        if value in COLLECTIVES:
            lines += _mpich_branch(below, _Branch(value, where=f"{file}: {key}"))
    return "".join(f"{line}\n" for line in lines)


def _mpich_branch(tree: Any, branch: _Branch) -> Iterator[str]:
    if not isinstance(tree, dict) or not tree:
        raise UserError(f"{branch.where}: accepted is an object with conditions, or algorithm=NAME")
    for key, below in tree.items():
        where = f"{branch.where}, {key}"
        if key.startswith("algorithm="):
            yield _mpich_leaf(key.removeprefix("algorithm="), below, branch)
            return
        condition = _mpich_condition(key, where, early=branch.early)
        if condition is None:
            continue
        early = branch.early and re.split("[<=]", key)[0] in _KNOWN_EARLY
        conditions = branch.conditions + ((condition,) if condition else ())
        yield from _mpich_branch(below, _Branch(branch.collective, conditions, early, where))


def _mpich_condition(key: str, where: str, *, early: bool) -> str | None:
    """In our words; "": always so; None: never so here."""
    parts = re.fullmatch(r"(\w+)(<=|<|=)(\w+)", key)
    if parts is None:
        raise UserError(f"{where}: accepted is NAME=VALUE, NAME<VALUE or NAME<=VALUE")
    name, sign, value = parts.groups()
    if value == "any" and sign == "=":
        return ""
    if name in _MPICH_FACTS:
        return "" if value == _MPICH_FACTS[name] else None
    if name == "comm_hierarchy" and value in _HIERARCHIES:
        return _HIERARCHIES[value]
    if key == "comm_size=pow2":
        return "ranks=pow2"
    if key == "comm_size=node_comm_size":
        return "one_node=yes"
    if key == "count<pow2":
        return key
    if name in _MPICH_NUMBERS and sign != "=" and value.isdecimal():
        late = name == "comm_size" and not early
        return f"{_MPICH_NUMBERS[name]}{'<=' if late else sign}{value}"
    known = ", ".join((*_MPICH_FACTS, *_MPICH_NUMBERS, "comm_hierarchy", "count<pow2"))
    raise UserError(f"{where}: skeletons know no such condition; accepted is {known}")


def _mpich_leaf(name: str, below: Any, branch: _Branch) -> str:
    known = _MPICH[branch.collective]
    short = re.sub(r"^MPIR_[A-Za-z_]*?_(?:intra|allcomm)_", "", name)
    if short not in known:
        raise UserError(f"{branch.where}, algorithm={name}: skeletons have {', '.join(sorted(known))}")
    told = list(below) if isinstance(below, dict) else []
    fan = []
    for word in told:
        if short != "k_dissemination" or not re.fullmatch(r"k=\d+", word):
            raise UserError(f"{branch.where}, algorithm={name}: {word}: accepted is nothing more")
        fan = [f"fan={word.removeprefix('k=')}"]
    return " ".join([branch.collective, known[short], *branch.conditions, *fan])


def openmpi_rules(file: Path) -> str:
    """Of a rules file for Open MPI, in either format."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    rules = _openmpi_json(text, file) if text.lstrip().startswith("{") else _openmpi_lines(text, file)
    return "".join(f"{rule}\n" for rule in rules)


class _Numbers:
    """Those of a file, one after the other; what follows # on a line is a remark."""

    def __init__(self, text: str, file: Path) -> None:
        self._file = file
        self._found = [
            (line, word)
            for line, content in enumerate(text.splitlines(), 1)
            for word in content.partition("#")[0].split()
        ]
        self._at = 0

    def next(self, what: str) -> int:
        if self._at == len(self._found):
            raise UserError(f"{self._file}: the file ends where {what} should be")
        line, word = self._found[self._at]
        if not word.isdecimal():
            raise UserError(f"{self._file}, line {line}: {what} = {word}: accepted is a whole number")
        self._at += 1
        return int(word)

    def more_on_line(self) -> bool:
        return 0 < self._at < len(self._found) and self._found[self._at][0] == self._found[self._at - 1][0]


@dataclass(frozen=True)
class _Way:
    """What Open MPI is to do from a size on."""

    size: int
    algorithm: int
    fan: int = 0
    segment: int = 0
    window: int = 0


def _openmpi_lines(text: str, file: Path) -> list[str]:
    version = re.match(r"\s*rule-file-version-(\d+)", text)
    numbers = _Numbers(re.sub(r"rule-file-version-\d+", "", text, count=1), file)
    rules: list[str] = []
    for _ in range(numbers.next("the number of collectives")):
        number = numbers.next("a collective")
        if number >= len(_OPENMPI_NUMBERS):
            raise UserError(f"{file}: collective {number}: accepted is 0 to {len(_OPENMPI_NUMBERS) - 1}")
        sizes: dict[int, list[_Way]] = {}
        for _ in range(numbers.next("the number of communicator sizes")):
            ranks = numbers.next("a communicator size")
            ways = []
            for _ in range(numbers.next("the number of message sizes")):
                size, algorithm, fan, segment = (
                    numbers.next(what) for what in ("a message size", "an algorithm", "a fan-out", "a segment size")
                )
                later = version is not None and int(version[1]) > 1 and numbers.more_on_line()
                window = numbers.next("a number of requests") if later else 0
                ways.append(_Way(size, algorithm, fan, segment, window))
            if ways and ways[0].size != 0:
                raise UserError(f"{file}: the first message size for {ranks} ranks is {ways[0].size}: accepted is 0")
            sizes[ranks] = ways
        rules += _openmpi_collective(_OPENMPI_NUMBERS[number], sizes, file)
    return rules


def _openmpi_json(text: str, file: Path) -> list[str]:
    try:
        tree = json.loads(text)
    except ValueError as error:
        raise UserError(f"{file} is no JSON: {error}") from None
    collectives = tree.get("collectives")
    if not isinstance(collectives, dict):
        raise UserError(f"{file}: collectives: accepted is an object with a list for each collective")
    rules: list[str] = []
    for key, blocks in collectives.items():
        name = key.replace("reducescatter", "reduce_scatter").replace("scatterblock", "scatter_block")
        if name not in COLLECTIVES:
            continue
        for block in _list(blocks, f"{file}: {key}"):
            place = block.get("comm_rank_distribution", "any")
            if place not in _DISTRIBUTIONS:
                raise UserError(
                    f"{file}: {key}: comm_rank_distribution = {place}: accepted is {', '.join(_DISTRIBUTIONS)}"
                )
            ranks = (_whole(block, "comm_size_min", file) or 0, _whole(block, "comm_size_max", file))
            for rule in _list(block.get("rules"), f"{file}: {key}: rules"):
                way = _Way(_whole(rule, "msg_size_min", file) or 0, _whole(rule, "alg", file) or 0,
                           _whole(rule, "faninout", file) or 0, 0, _whole(rule, "reqs", file) or 0)  # fmt: skip
                found = _openmpi_way(name, way, ranks, _whole(rule, "msg_size_max", file), file)
                rules += [" ".join([line, *_DISTRIBUTIONS[place]]) for line in found]
    return rules


_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "any": (),
    "one-per-node": ("hierarchy=no", "one_node=no"),
    "single-node": ("one_node=yes",),
}


def _list(content: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        raise UserError(f"{where}: accepted is a list of objects")
    return content


def _whole(content: Mapping[str, Any], key: str, file: Path) -> int | None:
    """None: not given, or without end."""
    value = content.get(key)
    if value is None or value == "inf":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UserError(f"{file}: {key} = {value}: accepted is a whole number")
    return value


def _openmpi_collective(name: str, sizes: Mapping[int, Sequence[_Way]], file: Path) -> list[str]:
    """The largest communicator size that is no more than the ranks counts, or the first one, and so for messages. Where
    the algorithm is 0 the library decides."""
    if name not in COLLECTIVES:
        return []
    rules: list[str] = []
    ranks = sorted(sizes)
    for size, after in zip(ranks, [*ranks[1:], None], strict=True):
        ways = sorted(sizes[size], key=lambda way: way.size)
        least = 0 if size == ranks[0] else size
        most = None if after is None else after - 1
        for way, following in zip(ways, [*ways[1:], None], strict=True):
            last = None if following is None else following.size - 1
            rules += _openmpi_way(name, way, (least, most), last, file)
    return rules


def _openmpi_way(name: str, way: _Way, ranks: tuple[int, int | None], last: int | None, file: Path) -> list[str]:
    known = _OPENMPI[name]
    if not 0 <= way.algorithm < len(known):
        raise UserError(f"{file}: {name}: algorithm {way.algorithm}: accepted is 0 to {len(known) - 1}")
    if way.algorithm == 0:
        return []
    counted = "total" if name in _TOTAL else "bytes"
    words = [name, known[way.algorithm]]
    words += [f"ranks>={ranks[0]}"] if ranks[0] > 0 else []
    words += [f"ranks<={ranks[1]}"] if ranks[1] is not None else []
    words += [f"{counted}>={way.size}"] if way.size > 0 else []
    words += [f"{counted}<={last}"] if last is not None else []
    if name == "barrier":
        words = words[:2] + [word for word in words[2:] if word.startswith("ranks")]
    if known[way.algorithm] == "chain":
        words.append(f"fan={max(way.fan, 1)}")
    # Only these are told: recursive doubling and the like have no segments.
    if way.segment > 0 and known[way.algorithm].split()[0] in _IN_SEGMENTS and way.algorithm not in _WHOLE[name]:
        words.append(f"segment={way.segment}")
    if way.window > 0 and name == "alltoall" and way.algorithm == _LINEAR_SYNC:
        words.append(f"window={way.window}")
    return [" ".join(words)]


_IN_SEGMENTS = {"chain", "pipeline", "binary", "binomial", "distance_binomial", "knomial", "in_order_binary", "ring",
                "asked"}  # fmt: skip
# Algorithms that send whole what others of our name send in segments: Open MPI's plain ring.
_WHOLE: Mapping[str, frozenset[int]] = {
    **{name: frozenset() for name in COLLECTIVES},
    "allreduce": frozenset({4}),
    "allgather": frozenset({4, 6}),
    "allgatherv": frozenset({3, 5}),
    "reduce_scatter": frozenset({3}),
}
_LINEAR_SYNC = 4


def rules(file: Path, *, library: str) -> str:
    """Of a tuning file for a library, "mpich" or "openmpi"."""
    return mpich_rules(file) if library == "mpich" else openmpi_rules(file)
