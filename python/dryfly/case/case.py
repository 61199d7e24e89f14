"""A case: what is run, which is all that its result depends on. How it is run (recording, time limits, output) is a
Runner's (run/runner.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dryfly.base.checked import check_fields

SEED_MAX = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """By the names of the flags of `dryfly run`. `nodes`, `ppn` and `ranks` are counts; None: it follows from the
    others. `faults` and `storage` are a file, or what one would hold. No flag: `environment`.

    Raises UserError for a value of another type."""

    program: tuple[str, ...] = ()  # and its arguments
    machine: str = "testbed"  # a name, or a file
    sets: tuple[str, ...] = ()
    nodes: int | None = None
    ppn: int | None = None
    ranks: int | None = None
    place: str = "packed"
    seed: int = 1
    mpi: str | None = None
    provider: str = "cxi"
    on_node: str = "provider"
    compute: str = "measured"
    skip_numerics: bool = False
    faults: str | Mapping[str, object] | None = field(default=None, hash=False)
    storage: str | Mapping[str, object] | None = field(default=None, hash=False)
    launcher: str = "dryfly"  # of mpi/launchers.py
    environment: tuple[tuple[str, str], ...] = ()  # variables on top of the caller's

    def __post_init__(self) -> None:
        check_fields(self)
