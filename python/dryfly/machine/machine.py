"""A machine: what its file says, checked. machine/load.py reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dryfly.machine import cabling

BY_USER = "--set"  # the source of what the command line gives


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One checked value, with what the file says about where it comes from."""

    value: int | str
    text: str
    source: str = ""
    certainty: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class GroupKind:
    name: str
    groups: int
    switches: int
    nodes: int
    nics_per_node: int
    attach: str
    local_links: int

    @property
    def nodes_in_all(self) -> int:
        return self.groups * self.nodes


@dataclass(frozen=True, kw_only=True)
class Machine:
    name: str
    title: str
    facts: Mapping[str, Fact]
    kinds: tuple[GroupKind, ...]
    global_links: Mapping[tuple[int, int], int] = field(default_factory=dict)  # (kind I, kind J) with I <= J
    cabling: cabling.Cabling | None = None  # then global_links are 0: each cable is listed

    def number(self, path: str) -> int:
        value = self.facts[path].value
        assert isinstance(value, int)
        return value

    def text(self, path: str) -> str:
        return str(self.facts[path].value)

    def optional(self, path: str) -> int | str | None:
        fact = self.facts.get(path)
        return None if fact is None else fact.value

    @property
    def job_kinds(self) -> tuple[int, ...]:
        """The kinds of groups whose nodes a job may use, as indices into `kinds`."""
        names = [name.strip() for name in self.text("job.kinds").split(",")]
        return tuple(index for index, kind in enumerate(self.kinds) if kind.name in names)

    @property
    def nodes_max(self) -> int:
        return self.number("job.nodes_max")

    @property
    def cores_per_node(self) -> int:
        return self.number("job.cores_per_node")
