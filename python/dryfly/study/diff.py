"""`dryfly diff A B`: the first event in which two recorded runs differ.

Candidates are ordered by the instant of the first value that differs: of a message that both runs send at once and one
delivers later, that is the earlier delivery. A step of a link is an interval, so that a message or call inside it comes
first. What has no instant, such as a link's longest wait, counts only where all events are equal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.result import tables

CONTEXT_ROWS = 3
_PS_PER_S = 10**12
_SPEC_FIELDS_SHOWN = 3

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """What the rows of a table are. The first field of each is an instant, and they are in its order."""

    table: str
    fields: tuple[str, ...]
    known_at: tuple[int, ...]  # for each field, which field is the instant at which it has its value
    instants: frozenset[str]  # fields in picoseconds


_MESSAGES = _Kind(
    table="messages",
    fields=("called", "source", "target", "delivered", "bytes", "protocol", "hops", "on_node"),
    known_at=(0, 0, 0, 3, 0, 0, 0, 0),
    instants=frozenset({"called", "delivered"}),
)
_CALLS = _Kind(
    table="calls",
    fields=("entered", "call", "left", "waiting", "bytes"),
    known_at=(0, 0, 2, 2, 2),
    instants=frozenset({"entered", "left", "waiting"}),
)
_STEPS = _Kind(
    table="link_steps",
    fields=("begin", "data_bytes", "utilisation", "queue_bytes"),
    known_at=(0, 0, 0, 0),
    instants=frozenset({"begin"}),
)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A recorded run, its instants in picoseconds."""

    folder: Path
    result: Mapping[str, Any]
    messages: Sequence[Row]
    calls: Mapping[int, Sequence[Row]]  # by rank
    steps: Mapping[str, Sequence[Row]]  # by the link's name
    step_ps: int  # 0: no link carried anything
    links: Mapping[str, Mapping[str, Any]]  # totals by the link's name
    waits: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where two runs differ first. A row is None where that run has none any more; times in it are picoseconds."""

    table: str  # messages, calls, link_steps; links, waits, result: by the end
    instant_ps: int | None  # of link_steps the begin of the step; None: a total, which has no instant
    ranks: tuple[int, ...]  # the source and target of a message, or the rank of a call
    link: str | None
    fields: tuple[str, ...]
    a: Row | None
    b: Row | None
    before: tuple[Row, ...]  # the rows before it, of A
    instants: frozenset[str] = frozenset()

    @property
    def differing(self) -> tuple[str, ...]:
        """The fields that differ; all of them where one run has no row."""
        if self.a is None or self.b is None:
            return self.fields
        return tuple(name for name, a, b in zip(self.fields, self.a, self.b, strict=True) if a != b)


def load(folder: Path) -> Recording:
    """Raises UserError for a folder that holds no recorded run, or a damaged one."""
    import pyarrow

    if not (folder / tables.RESULT).is_file():
        raise UserError(f'{folder} is no recorded run; "dryfly run --record FOLDER" makes one')
    name = tables.RESULT
    try:
        result = json.loads((folder / name).read_text(encoding="utf-8"))
        _ = result["ranks"], result["spec"], result["fingerprint"]
        name = "messages"
        messages = _messages(tables.read(folder, name))
        name = "calls"
        calls = _calls(tables.read(folder, name))
        name = "links"
        links = tables.read(folder, name)
        totals = _totals(links)
        name = "link_steps"
        steps, step_ps = _steps(tables.read(folder, name), links["name"])
        name = "waits"
        waits = tuple(zip(*tables.read(folder, name).values(), strict=True))
    except (OSError, ValueError, KeyError, TypeError, IndexError, pyarrow.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is damaged"
        if isinstance(error, FileNotFoundError):
            reason = "it is not there"
        raise UserError(f"{folder}: {name} cannot be read: {reason}") from None
    return Recording(
        folder=folder, result=result, messages=messages, calls=calls, steps=steps, step_ps=step_ps, links=totals,
        waits=waits,
    )  # fmt: skip


def _ps(seconds: float) -> int:
    """Back to what the recorder had: picoseconds of up to two hours survive as a number of seconds."""
    return round(seconds * _PS_PER_S)


def _rows(columns: tables.Columns, *names: str) -> Iterable[Row]:
    return zip(*(columns[name] for name in names), strict=True)


def _messages(columns: tables.Columns) -> list[Row]:
    rows = _rows(columns, "called_s", "latency_s", "source", "target", "bytes", "protocol", "hops", "on_node")
    return sorted(
        (_ps(called), source, target, _ps(called) + _ps(latency), *rest)
        for called, latency, source, target, *rest in rows
    )


def _calls(columns: tables.Columns) -> dict[int, list[Row]]:
    by_rank: dict[int, list[Row]] = {}
    for rank, entered, call, left, waiting, size in _rows(
        columns, "rank", "entered_s", "call", "left_s", "waiting_s", "bytes"
    ):
        by_rank.setdefault(rank, []).append((_ps(entered), call, _ps(left), _ps(waiting), size))
    for rows in by_rank.values():
        rows.sort(key=lambda row: row[0])  # calls of one instant stay in their order
    return by_rank


def _totals(columns: tables.Columns) -> dict[str, dict[str, Any]]:
    names = ("kind", "data_bytes", "busy_s", "mean_queue_bytes", "longest_wait_s")
    return {name: dict(zip(names, rest, strict=True)) for name, *rest in _rows(columns, "name", *names)}


def _steps(columns: tables.Columns, names: Sequence[str]) -> tuple[dict[str, list[Row]], int]:
    by_link: dict[str, list[Row]] = {}
    for link, begin, *rest in _rows(columns, "link", "time_s", "data_bytes", "utilisation", "queue_bytes"):
        by_link.setdefault(names[link], []).append((_ps(begin), *rest))
    return by_link, _ps(columns["step_s"][0]) if columns["step_s"] else 0


def first_difference(a: Recording, b: Recording) -> Difference | None:
    """None: the runs are equal. Raises UserError for runs of different numbers of ranks."""
    if a.result["ranks"] != b.result["ranks"]:
        raise UserError(
            f"{a.folder} has {a.result['ranks']} ranks and {b.folder} {b.result['ranks']}: runs of as many are compared"
        )
    found = [(instant, 0, _of_message(a, b, index)) for instant, index in _first(_MESSAGES, a.messages, b.messages)]
    for rank in sorted(a.calls.keys() | b.calls.keys()):
        of_a, of_b = a.calls.get(rank, ()), b.calls.get(rank, ())
        for instant, index in _first(_CALLS, of_a, of_b):
            found.append((instant, 1, _difference(_CALLS, instant, of_a, of_b, index, ranks=(rank,))))
    if steps_comparable(a, b):
        step_ps = a.step_ps or b.step_ps
        for link in sorted(a.steps.keys() | b.steps.keys()):
            step = _first_step(a.steps.get(link, ()), b.steps.get(link, ()))
            if step is not None:
                of_a, of_b = a.steps.get(link, ()), b.steps.get(link, ())
                different = _difference(_STEPS, step * step_ps, of_a, of_b, step, link=link)
                found.append(((step + 1) * step_ps - 1, 2, different))  # by the end of the step
    if found:
        return min(found, key=lambda candidate: candidate[:2])[2]  # of equal ones the first: lower rank, name of link
    return _of_totals(a, b)


def steps_comparable(a: Recording, b: Recording) -> bool:
    return a.step_ps == b.step_ps or not a.step_ps or not b.step_ps


def _first(kind: _Kind, a: Sequence[Row], b: Sequence[Row]) -> list[tuple[int, int]]:
    """The instant and the number of the row that differs first; at most one."""
    best: list[tuple[int, int]] = []
    for index, (of_a, of_b) in enumerate(zip_longest(a, b)):
        begin = min(row[0] for row in (of_a, of_b) if row is not None)
        if best and begin >= best[0][0]:
            break
        if of_a == of_b:
            continue
        instant = begin if of_a is None or of_b is None else _instant(kind, of_a, of_b)
        if not best or instant < best[0][0]:
            best = [(instant, index)]
    return best


def _instant(kind: _Kind, a: Row, b: Row) -> int:
    places = (at for at, x, y in zip(kind.known_at, a, b, strict=True) if x != y)
    return min(int(min(a[at], b[at])) for at in places)


def _first_step(a: Sequence[Row], b: Sequence[Row]) -> int | None:
    """A step that is not there is one in which the link was idle."""
    for index, (of_a, of_b) in enumerate(zip_longest(a, b)):
        one, other = ((0, 0, 0) if row is None else row[1:] for row in (of_a, of_b))
        if one != other:
            return index
    return None


def _of_message(a: Recording, b: Recording, index: int) -> Difference:
    rows = [rows[index] for rows in (a.messages, b.messages) if index < len(rows)]
    instant = _instant(_MESSAGES, *rows) if len(rows) == 2 else int(rows[0][0])
    first = min(rows)
    return _difference(_MESSAGES, instant, a.messages, b.messages, index, ranks=(first[1], first[2]))


def _difference(
    kind: _Kind, instant: int, a: Sequence[Row], b: Sequence[Row], index: int, *, ranks: tuple[int, ...] = (),
    link: str | None = None,
) -> Difference:  # fmt: skip
    return Difference(
        table=kind.table,
        instant_ps=instant,
        ranks=ranks,
        link=link,
        fields=kind.fields,
        a=a[index] if index < len(a) else None,
        b=b[index] if index < len(b) else None,
        before=tuple(a[max(index - CONTEXT_ROWS, 0) : index]),
        instants=kind.instants,
    )


def _of_totals(a: Recording, b: Recording) -> Difference | None:
    for link in sorted(a.links.keys() | b.links.keys()):
        if a.links.get(link) != b.links.get(link):
            return _total("links", a.links.get(link), b.links.get(link), link=link)
    if a.waits != b.waits:
        fields = ("kind", "from_s", "to_s", "frames")
        x, y = next((x, y) for x, y in zip_longest(a.waits, b.waits) if x != y)
        of_a, of_b = (None if row is None else dict(zip(fields, row, strict=True)) for row in (x, y))
        return _total("waits", of_a, of_b)
    names = ("virtual_time_s", "messages", "network_timeouts", "fingerprint")
    of_a, of_b = ({name: run.result.get(name) for name in names} for run in (a, b))
    return _total("result", of_a, of_b) if of_a != of_b else None


def _total(
    table: str, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None, *, link: str | None = None
) -> Difference:
    return Difference(
        table=table,
        instant_ps=None,
        ranks=(),
        link=link,
        fields=tuple(a if a is not None else b or ()),
        a=None if a is None else tuple(a.values()),
        b=None if b is None else tuple(b.values()),
        before=(),
    )


def conditions(a: Recording, b: Recording) -> list[str]:
    """What was not the same from the start, and what is left out of the comparison; a line each."""
    lines = []
    for name in ("machine", "nodes", "program", "seed", "dryfly"):
        one, other = (run.result.get(name) for run in (a, b))
        if one != other:
            lines.append(f"{name}: {_plain(one)} and {_plain(other)}")
    if a.result.get("placement") != b.result.get("placement"):
        lines.append("the ranks are on different nodes")
    changed = _spec_changes(str(a.result["spec"]), str(b.result["spec"]))
    if changed:
        more = f" and {len(changed) - _SPEC_FIELDS_SHOWN} more" if len(changed) > _SPEC_FIELDS_SHOWN else ""
        lines.append(f"the spec differs in {', '.join(changed[:_SPEC_FIELDS_SHOWN])}{more}")
    if not steps_comparable(a, b):
        lines.append("the steps of links are not equally long and are not compared")
    return lines


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _spec_changes(a: str, b: str) -> list[str]:
    one, other = (dict(line.partition(" ")[::2] for line in text.splitlines()) for text in (a, b))
    return [name for name in dict.fromkeys([*one, *other]) if one.get(name) != other.get(name)]


def diff(a: str, b: str) -> int:
    """The command: 0 for equal runs, 1 for different ones."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UserError(f'dryfly diff needs {error.name}: pip install "dryfly[record]"') from None
    runs = load(Path(a)), load(Path(b))
    found = first_difference(*runs)
    for line in conditions(*runs):
        print(f"dryfly: {line}", file=sys.stderr)
    if found is None:
        calls = sum(map(len, runs[0].calls.values()))
        print(f"the runs are equal: {len(runs[0].messages):,} messages and {calls:,} MPI calls")
        return 0
    print("\n".join(shown(found, a, b)))
    return 1


def shown(found: Difference, a: str, b: str) -> list[str]:
    """For people. No line is cut."""
    lines = [f"{_headline(found)}", "", f"  A  {a}", f"  B  {b}", ""]
    cells: list[tuple[str, ...]] = [("", "A", "B")]
    for place, name in enumerate(found.fields):
        values = (_text(found, name, None if row is None else row[place]) for row in (found.a, found.b))
        cells.append((f"{'*' if name in found.differing else ' '} {name}", *values))
    lines += _aligned(cells)
    if found.before:
        rows = [tuple(map(partial(_text, found), found.fields, row)) for row in found.before]
        lines += ["", f"Before it, in A (rows of {found.table}):"]
        lines += [f"  {line}" for line in _aligned([found.fields, *rows])]
    return lines


def _headline(found: Difference) -> str:
    if found.instant_ps is None:
        of = f" of {found.link}" if found.link else ""
        return f"All events are equal. By the end the runs differ in {found.table}{of}."
    at = instant_text(found.instant_ps)
    if found.table == "messages":
        return f"The runs differ first at {at}, in a message from rank {found.ranks[0]} to rank {found.ranks[1]}."
    if found.table == "calls":
        return f"The runs differ first at {at}, in an MPI call of rank {found.ranks[0]}."
    return f"The runs differ first in the step from {at} on, on the link {found.link}."


def instant_text(ps: int) -> str:
    """To the picosecond."""
    return f"{ps // 10**6}.{ps % 10**6:06d} us"


def _text(found: Difference, name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in found.instants:
        return instant_text(value)
    return repr(value) if isinstance(value, float) else str(value)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
