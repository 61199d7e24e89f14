"""A case: what is run, which is all that its result depends on. How it is run (recording, time limits, output) is a
Runner's (run/runner.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dryfly.base.checked import check_fields
from dryfly.base.errors import UserError

SEED_MAX = 2**63 - 1
PROVIDERS = ("cxi", "linkx")
SOFTWARE = ("none", "measured")
NETWORKS = ("packet", "flow")  # models of the network: fabric.model of the spec
LAUNCHERS = ("dryfly", "hydra", "prterun", "slurm", "pals", "flux")  # of mpi/launchers.py


@dataclass(frozen=True, kw_only=True)
class Case:
    """By the names of the flags of `dryfly run`. `nodes`, `ppn` and `ranks` are counts; None: it follows from the
    others. `faults`, `storage`, `noise` and `service` are a file, or what one would hold. No flag: `environment`.

    Raises UserError for a value of another type."""

    program: tuple[str, ...] = ()  # and its arguments
    machine: str = "testbed"  # a name, or a file
    sets: tuple[str, ...] = ()
    nodes: int | None = None
    ppn: int | None = None
    ranks: int | None = None
    network: str = NETWORKS[0]
    place: str = "packed"
    seed: int = 1
    mpi: str | None = None
    cpu_bind: str | None = None
    mem_bind: str | None = None
    gpu_bind: str | None = None
    nic_bind: str | None = None
    depth: int | None = None  # hardware threads, or what cpu_bind gives out, of a rank
    provider: str = PROVIDERS[0]
    on_node: str = "auto"  # case/on_node.py
    compute: str = "measured"
    software: str | None = None  # None: measured where this build of the library has been counted
    skip_numerics: bool = False
    faults: str | Mapping[str, object] | None = field(default=None, hash=False)
    storage: str | Mapping[str, object] | None = field(default=None, hash=False)
    noise: str | Mapping[str, object] = field(default="none", hash=False)  # or none, or machine
    service: str | Mapping[str, object] | None = field(default=None, hash=False)
    launcher: str = LAUNCHERS[0]
    launcher_options: str | None = None
    environment: tuple[tuple[str, str], ...] = ()  # variables on top of the caller's

    def __post_init__(self) -> None:
        check_fields(self)
        for name, accepted in (
            ("network", NETWORKS),
            ("provider", PROVIDERS),
            ("launcher", LAUNCHERS),
            ("software", (None, *SOFTWARE)),
        ):
            if getattr(self, name) not in accepted:
                raise UserError(f"Case: {name}={getattr(self, name)!r}: accepted is {', '.join(map(str, accepted))}")
        for name, value in self.environment:
            if not name or "=" in name or "\0" in name + value:
                raise UserError(
                    f"Case: environment: {name!r}={value!r}: accepted is a name without = and a text without \\0"
                )
        if any("\0" in word for word in self.program):
            raise UserError(f"Case: program={self.program!r}: accepted are words without \\0")
