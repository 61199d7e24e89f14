"""What data/validate.toml says, and --limits of it otherwise."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.case import near
from dryfly.machine.machine import Machine
from dryfly.machine.node import most_nics
from dryfly.validate import judge, plan
from dryfly.validate.judge import Limits
from dryfly.validate.plan import Sizes

_PAGE = 4096
_GIVEN = ("tolerance", "limit")  # tables of --limits
_SECONDS = ("answer_s", "hang_s", "start_s", "chunk_s", "prolog_s", "epilog_s")  # of Native


@dataclass(frozen=True, kw_only=True)
class Native:
    """Of real machines only: `repeats` of each step, `memory_errors` that are too many, the others in seconds."""

    repeats: int
    memory_errors: int
    answer_s: float
    hang_s: float
    start_s: float
    chunk_s: float
    prolog_s: float
    epilog_s: float


@dataclass(frozen=True, kw_only=True)
class Settings:
    sizes: Sizes
    limits: Limits
    again: int
    flaps: tuple[tuple[int, int], ...]  # hours, and how many in them are too many
    replays: float  # of the frames of a link
    native: Native

    def too_many_flaps(self, instants: Sequence[float]) -> tuple[int, int, int] | None:
        """Of a link that went down at these, in seconds since now: in so many hours so many, and the limit."""
        for hours, limit in self.flaps:
            count = sum(at_s > -3600 * hours for at_s in instants)
            if count >= limit:
                return hours, count, limit
        return None


@cache
def _known() -> dict[str, dict[str, Any]]:
    content = tomllib.loads((data_folder() / "validate.toml").read_text(encoding="utf-8"))
    return {name: {row: facts["value"] for row, facts in rows.items()} for name, rows in content.items()}


def settings(
    *, native: bool = False, machine: Machine | None = None, network: str = "", limits: str | None = None
) -> Settings:
    """Of a simulated `machine`, by its network, or a `native` one; `limits`: a file of the user's. Raises UserError."""
    known = _known()
    tables = {name: dict(known[name]) for name in ("size", *_GIVEN)}
    for name in tables if native else ():
        tables[name] |= known[f"native_{name}"]
    tables["size"] |= known.get(f"{network}_size", {})
    if machine is not None:
        beyond = near.longest_cached(machine, plan.RANKS_OF_NIC * most_nics(machine)) + _PAGE
        tables["size"]["memory_bytes"] = max(tables["size"]["memory_bytes"], beyond // _PAGE * _PAGE)
    if limits is not None:
        for name, rows in _given(Path(limits), tables).items():
            tables[name] |= rows
    limit = {**known["native_limit"], **tables["limit"]}
    return Settings(
        sizes=Sizes(**tables["size"]),
        limits=Limits(
            tolerance=tables["tolerance"],
            sigmas=float(limit["sigmas"]),
            scatter=tuple(tables["tolerance"]) if native else judge.LOADED,
            shared=float(limit["shared"]) if native else None,
        ),
        again=int(limit["again"]),
        flaps=((1, int(limit["flaps_per_hour"])), (10, int(limit["flaps_per_10_hours"]))),
        replays=float(limit["replays"]),
        native=Native(
            repeats=int(limit["repeats"]),
            memory_errors=int(limit["memory_errors"]),
            **{name: float(limit[name]) for name in _SECONDS},
        ),
    )


def _given(path: Path, known: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """A row is a number, or a table with one as its value."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--limits {path}: {error.strerror}") from None
    except ValueError as error:  # no UTF-8, or no TOML
        raise UserError(f"--limits {path}: {error}") from None
    found: dict[str, dict[str, float]] = {}
    for name, rows in content.items():
        if name not in _GIVEN or not isinstance(rows, dict):
            raise UserError(f"--limits {path}: {name}: accepted are tables [{'] and ['.join(_GIVEN)}]")
        for row, facts in rows.items():
            value = facts.get("value") if isinstance(facts, dict) else facts
            if row not in known[name]:
                raise UserError(f"--limits {path}: {name}.{row}: accepted is {', '.join(known[name])}")
            whole = isinstance(known[name][row], int)
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not 0 < value < 1e9:
                kind = "a whole number" if whole else "a number"
                raise UserError(f"--limits {path}: {name}.{row} = {value}: accepted is {kind} above 0")
            found.setdefault(name, {})[row] = value
    return found
