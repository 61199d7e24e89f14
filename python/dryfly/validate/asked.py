"""What a user asks of a validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.case.case import SEED_MAX
from dryfly.validate import LEVELS, NETWORKS

NATIVE = "native"  # in place of a network's level


@dataclass(frozen=True, kw_only=True)
class Native:
    """Of a real cluster."""

    hosts: str | None = None  # None: the job's
    topology: str | None = None
    launcher: str | None = None
    launcher_options: tuple[str, ...] = ()
    nics: int | None = None  # None: as many as a host has of Slingshot's, or 1
    model: str | None = None  # a machine whose model says what is expected


@dataclass(frozen=True, kw_only=True)
class Asked:
    """By the names of the flags. Raises UserError where they cannot be."""

    machine: str = "testbed"
    sets: tuple[str, ...] = ()
    nodes: int | None = None
    place: str = "packed"
    seed: int = 1
    faults: str | Mapping[str, object] | None = None
    noise: str = "none"
    network: str | None = None  # None: links, with ranks packet
    mpi: str | None = None  # real ranks by this library; None: ranks without a program
    level: str = LEVELS[-1]  # the last one
    baseline: str | None = None
    limits: str | None = None
    native: Native | None = None
    out: str | None = None

    def __post_init__(self) -> None:
        if self.network is None:
            default = NATIVE if self.native is not None else NETWORKS[0] if self.mpi is None else "packet"
            object.__setattr__(self, "network", default)
        networks = (NATIVE,) if self.native is not None else NETWORKS if self.mpi is None else NETWORKS[1:]
        for flag, value, accepted in (("--network", self.network, networks), ("--level", self.level, LEVELS)):
            if value not in accepted:
                raise UserError(f"{flag} {value}: accepted is {', '.join(accepted)}")
        if not 0 <= self.seed <= SEED_MAX:
            raise UserError(f"--seed {self.seed}: accepted is 0 to {SEED_MAX}")
