"""A question: all that an answer depends on. Checked when it is made, so that a sweep is refused before it starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from dryfly import __version__
from dryfly.base.errors import UserError
from dryfly.case.case import SEED_MAX
from dryfly.case.placement import nodes_listed
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.machine.node import most_nics, node_of
from dryfly.predict import facts
from dryfly.predict.find import find, ranks_of
from dryfly.predict.workloads import CLOSED, SKELETON, Workload
from dryfly.scenario.faults import down_nodes

LEVELS = ("latency", "links", "packet", "flow")


@dataclass(frozen=True, kw_only=True)
class Question:
    """By the names of the flags. `workload`: its name, or a file. None: it follows from the machine or the workload.
    `parameters`: as the user writes
    them; `values` has all of them in base units."""

    workload: str
    machine: str = "aurora"
    sets: tuple[str, ...] = ()
    nodes: int | None = None
    ppn: int | None = None
    model: str | None = None
    level: str | None = None
    place: str = "packed"
    seed: int = 1
    faults: str | None = None
    noise: str = "none"
    software: str = "none"
    mpi: str | None = None  # whose own code is charged, with software
    parameters: tuple[tuple[str, str], ...] = ()
    charged: tuple[tuple[str, int], ...] = ()  # what calls cost, in ps by names of the spec, in place of the machine's
    called: str | None = None  # what the user knows the workload as, where its file is not the user's
    fit: bool = False  # order, block and grid of HPL are chosen even where they have defaults
    values: tuple[tuple[str, str], ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        row, given = self.row, dict(self.parameters)
        if self.model is None:
            object.__setattr__(self, "model", row.models[0])
        if self.model not in row.models:
            has = f"accepted for {self.title} is" if row.is_file else f"{row.name} has"
            raise UserError(f"--model {self.model}: {has} {' and '.join(row.models)}")
        object.__setattr__(self, "values", tuple(self._values(row, given).items()))
        machine = self.loaded
        if self.ppn is None:
            object.__setattr__(self, "ppn", _ranks_of_node(row, machine))
        if self.nodes is None:
            object.__setattr__(self, "nodes", self._usual_nodes(machine))
        if self.level is None and self.model == SKELETON:
            object.__setattr__(self, "level", "links")
        self._check(machine)

    def _values(self, row: Workload, given: Mapping[str, str]) -> dict[str, str]:
        known = {each.name for each in row.of_model(str(self.model))}
        usual = facts.hpl_solver(self.loaded.name).choices if row.name == "hpl" else {}
        try:
            return row.values({**{name: usual[name] for name in usual if name in known}, **given}, str(self.model))
        except UserError as error:
            raise UserError(f"{self.title}: {error}" if row.is_file else str(error)) from None

    def _usual_nodes(self, machine: Machine) -> int:
        """All, unless a file for --place gives some; of a GOAL file or a recording as many as its ranks need."""
        listed = nodes_listed(machine, self.place)
        if listed is not None:
            return listed
        ranks = ranks_of(self.workload, dict(self.values))
        return machine.nodes_max if ranks is None else -(-ranks // max(self.ppn or 1, 1))

    @property
    def row(self) -> Workload:
        return find(self.workload)

    @property
    def title(self) -> str:
        return self.called or self.workload

    @property
    def loaded(self) -> Machine:
        return _machine(self.machine, self.sets)

    @property
    def ranks(self) -> int:
        assert self.nodes is not None
        assert self.ppn is not None
        return self.nodes * self.ppn

    @property
    def open_block(self) -> bool:
        """--fit chooses HPL's block too where nobody gives it."""
        return self.fit and "nb" not in dict(self.parameters)

    def parameter(self, name: str) -> str | None:
        """In base units."""
        return dict(self.values).get(name)

    def _check(self, machine: Machine) -> None:
        assert self.nodes is not None
        assert self.ppn is not None
        for flag, value in (("--nodes", self.nodes), ("--ppn", self.ppn)):
            if value < 1:
                raise UserError(f"{flag} {value}: accepted is 1 or more")
        if not 0 <= self.seed <= SEED_MAX:
            raise UserError(f"--seed {self.seed}: accepted is 0 to {SEED_MAX}")
        down = len(down_nodes(machine))
        if self.nodes + down > machine.nodes_max:
            less = f", of which {down} are down" if down else ""
            raise UserError(f"{machine.name} has {machine.nodes_max} nodes{less}; {self.nodes} are asked for")
        threads = int(machine.optional("node.threads") or 1)
        if self.ppn > machine.cores_per_node * threads:
            raise UserError(
                f"--ppn {self.ppn}: a node of {machine.name} has {machine.cores_per_node} cores of {threads} threads"
            )
        if self.level is not None and self.level not in LEVELS:
            raise UserError(f"--level {self.level}: accepted is {', '.join(LEVELS)}")
        if self.mpi is not None and self.software == "none":
            raise UserError(f"--mpi {self.mpi}: with --software none no library's own code is charged: leave it out")
        self._check_grid()
        if self.model != SKELETON:
            self._check_without_ranks()

    def _check_grid(self) -> None:
        grid = self.parameter("grid")
        if grid is None:
            return
        size = 1
        for side in grid.split("x"):
            size *= int(side)
        if size != self.ranks:
            raise UserError(
                f"grid={grid} has {size:,} processes, and {self.nodes:,} nodes with {self.ppn} ranks are "
                f"{self.ranks:,}; accepted is a grid of as many"
            )

    def _check_without_ranks(self) -> None:
        """There are no ranks and, of a closed form, no links that faults could meet."""
        for flag, given in (
            ("--level", self.level is not None),
            ("--faults", self.faults is not None and self.model == CLOSED),
            ("--noise", self.noise != "none"),
            ("--software", self.software != "none"),
            ("--mpi", self.mpi is not None),
            ("--place", self.place != "packed"),
        ):
            if given:
                other = f", or take --model {SKELETON}" if SKELETON in self.row.models else ""
                raise UserError(f"{flag} has no effect on --model {self.model}: leave it out{other}")

    def content(self) -> dict[str, Any]:
        """As JSON has it; `of_content` makes a question of it again."""
        return {name: value for name, value in asdict(self).items() if name != "values"}

    def key(self, more: Mapping[str, Any]) -> str:
        """The same however values are written. `more`: what else an answer depends on, such as the text of its spec."""
        content = {
            name: value for name, value in self.content().items() if name not in ("parameters", "sets", "called")
        }
        content |= {**more, "values": self.values, "open_block": self.open_block, "dryfly": __version__}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def of_content(content: Mapping[str, Any]) -> Question:
    tuples = {
        "sets": tuple(content["sets"]),
        "parameters": tuple((name, value) for name, value in content["parameters"]),
        "charged": tuple((name, value) for name, value in content["charged"]),
    }
    return Question(**{**content, **tuples})


@cache
def _machine(name: str, sets: tuple[str, ...]) -> Machine:
    return load(name, sets=sets)


def _ranks_of_node(row: Workload, machine: Machine) -> int:
    if row.ppn == "gpus":
        return int(machine.optional("compute.gpu.count") or machine.optional("node.sockets") or 1)
    if row.ppn == "tiles":
        return node_of(machine, nics=most_nics(machine)).gpu_tiles * int(machine.optional("compute.gpu.count") or 1)
    if row.ppn == "nics":
        return most_nics(machine)
    return int(row.ppn)
