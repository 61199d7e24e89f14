"""The registry of published figures (data/published/SUBJECT.toml): which run or prediction measures what, and the
figures."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder

# judged: published in words, and beside it a figure of ours that no number can be held against; ordering: published in
# words that say what is above what, and `accepts` has the values that agree.
KINDS = ("predicted", "calibrated", "consistent", "device", "judged", "ordering", "untested")
# How ranks are placed and what they talk by, by the names of Case's fields.
RUN_KEYS = ("provider", "on_node", "cpu_bind", "gpu_bind", "nic_bind", "depth")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One run: a program of programs/micro, a pattern of dryfly-generator for each of `sizes`, a prediction, or what a
    machine's file adds up to."""

    name: str
    machine: str
    program: str = ""
    pattern: str = ""
    predict: str = ""  # a workload of dryfly predict
    model: str | None = None  # of it
    parameters: tuple[tuple[str, str], ...] = ()  # of it, as they are written
    operation: str = ""
    sets: tuple[str, ...] = ()
    nodes: int = 2
    ppn: int = 1
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)  # of a program
    may_fail: bool = False  # a program that was published to fail: its figure `right` is 0 then
    own_json: bool = False  # the program has no table of sizes: its figures are the numbers that its --json writes
    mpi: str | None = None  # the library that the figures were published for, or the one that stands for it
    needs: str = ""  # how that library is had, where few have it: without it the rows are untested
    run: Mapping[str, Any] = field(default_factory=dict)  # of a program: RUN_KEYS
    noise: str = "none"  # or "machine", where a tail decides
    seeds: int = 1  # with noise or flaps: measured so often, of which the median counts
    faults: tuple[Mapping[str, Any], ...] = ()  # flaps, as --faults has them
    ends: tuple[str, str] | None = None  # NODE.NIC
    crowd: tuple[int, int] | None = None  # that many nodes, spread over the machine's first so many
    ranks_per_nic: int = 1  # of a crowd
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """One published figure; `figure`, `minus` and `over` are MEASUREMENT/KEY."""

    id: str  # SUBJECT/...; empty: it has none
    quantity: str
    kind: str
    unit: str
    least: float | None  # None: published without a number
    most: float | None
    judgement: str  # in their place, in the publication's words
    accepts: tuple[float, float] | None  # what agrees with the publication, for a verdict; None: no verdict is given
    figure: str
    minus: str
    over: str
    scale: float
    constant: float | None  # what is known without a model: a calibrated row's efficiency, kept
    reference: str
    source: str
    certainty: str
    note: str

    @property
    def figures(self) -> tuple[str, ...]:
        return tuple(figure for figure in (self.figure, self.minus, self.over) if figure)


@dataclass(frozen=True, kw_only=True)
class Registry:
    measurements: Mapping[str, Measurement]
    rows: tuple[Row, ...]


def subjects() -> list[str]:
    folder = data_folder() / "published"
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def divided(words: str) -> tuple[str, str]:
    """A subject, and what may stand behind it: the id of a row, such as aurora/hpl/9234; else it is empty."""
    if words in subjects():
        return words, ""
    found = max((subject for subject in subjects() if words.startswith(f"{subject}/")), key=len, default=None)
    return (words, "") if found is None else (found, words)


def load(subject: str) -> Registry:
    path = data_folder() / "published" / f"{subject}.toml"
    if subject not in subjects():
        raise UserError(f'"{subject}" is no subject of reproduce; known are {", ".join(subjects())}')
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    measurements = {name: _measurement(name, raw) for name, raw in content.get("measurement", {}).items()}
    rows = [*(_row(raw, subject) for raw in content.get("row", [])), *_points(content.get("curve", []), subject)]
    for row in rows:
        _check(path.name, row, measurements)
    rows.sort(key=lambda row: (row.reference, row.kind == "untested"))
    return Registry(measurements=measurements, rows=tuple(rows))


def _measurement(name: str, raw: Mapping[str, Any]) -> Measurement:
    crowd = raw.get("crowd")
    return Measurement(
        name=name,
        machine=raw["machine"],
        program=raw.get("program", ""),
        pattern=raw.get("pattern", ""),
        predict=raw.get("predict", ""),
        model=raw.get("model"),
        parameters=tuple((name, str(value)) for name, value in raw.get("parameters", {}).items()),
        operation=raw.get("operation", ""),
        sets=tuple(raw.get("sets", ())),
        nodes=raw.get("nodes", 2),
        ppn=raw.get("ppn", 1),
        arguments=tuple(raw.get("arguments", ())),
        environment=raw.get("environment", {}),
        own_json=raw.get("own_json", False),
        may_fail=raw.get("may_fail", False),
        mpi=raw.get("mpi"),
        needs=raw.get("needs", ""),
        run=raw.get("run", {}),
        noise=raw.get("noise", "none"),
        seeds=raw.get("seeds", 1),
        faults=tuple(raw.get("faults", ())),
        ends=(raw["from"], raw["to"]) if "from" in raw else None,
        crowd=(crowd["nodes"], crowd["of"]) if crowd else None,
        ranks_per_nic=raw.get("ranks_per_nic", 1),
        sizes=tuple(raw.get("sizes", ())),
    )


def _row(raw: Mapping[str, Any], subject: str) -> Row:
    published = raw["published"]
    judgement = published if isinstance(published, str) else ""
    ends = [] if judgement else published if isinstance(published, list) else [published, published]
    accepts = raw.get("accepts")
    return Row(
        id=f"{subject}/{raw['id']}" if "id" in raw else "",
        quantity=raw["quantity"],
        kind=raw["kind"],
        unit=raw["unit"],
        least=float(ends[0]) if ends else None,
        most=float(ends[-1]) if ends else None,
        judgement=judgement,
        accepts=None if accepts is None else (float(accepts[0]), float(accepts[1])),
        figure=raw.get("figure", ""),
        minus=raw.get("minus", ""),
        over=raw.get("over", ""),
        scale=float(raw.get("scale", 1.0)),
        constant=raw.get("constant"),
        reference=raw["reference"],
        source=raw["source"],
        certainty=raw["certainty"],
        note=raw.get("note", ""),
    )


def _points(curves: list[Mapping[str, Any]], subject: str) -> Iterator[Row]:
    for curve in curves:
        for size, published in curve["points"].items():
            row = dict(curve) | {"published": published, "figure": curve["figure"].format(size)}
            row["quantity"] = curve["quantity"].format(f"{int(size):,}")
            yield _row(row, subject)


def _check(file: str, row: Row, measurements: Mapping[str, Measurement]) -> None:
    if row.kind not in KINDS:
        raise UserError(f'{file}: {row.quantity}: kind = "{row.kind}"; accepted is {", ".join(KINDS)}')
    if (row.kind == "untested") == bool(row.figures):
        raise UserError(f"{file}: {row.quantity}: a row has a figure, or is untested and says why")
    if row.kind != "untested" and (row.kind in ("judged", "ordering")) != (row.least is None):
        raise UserError(f"{file}: {row.quantity}: a row without a published number is judged, an ordering, or untested")
    if row.kind == "ordering" and row.accepts is None:
        raise UserError(f"{file}: {row.quantity}: an ordering has `accepts`, the values that agree with it")
    if row.accepts is not None and row.accepts[0] > row.accepts[1]:
        raise UserError(f"{file}: {row.quantity}: accepts = {list(row.accepts)}: accepted is the least and the most")
    if row.kind == "consistent" and row.constant is None:
        raise UserError(f"{file}: {row.quantity}: a consistent row has `constant`, which it does no better than")
    if row.kind in ("untested", "calibrated") and not row.note:
        raise UserError(f"{file}: {row.quantity}: the note must say why, or what was set to meet it")
    for figure in row.figures:
        for key in measurements[figure.split("/")[0]].run if figure.split("/")[0] in measurements else ():
            if key not in RUN_KEYS:
                raise UserError(f'{file}: {row.quantity}: run has "{key}"; accepted are {", ".join(RUN_KEYS)}')
        if figure.split("/")[0] not in measurements:
            raise UserError(f"{file}: {row.quantity}: {figure} names no measurement of this file")
