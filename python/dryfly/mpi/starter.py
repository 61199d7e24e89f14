"""How another launcher is called, and for what job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dryfly.mpi.libraries import MpiLibrary


@dataclass(frozen=True, kw_only=True)
class Starter:
    """How another launcher is called: what launch/plan.hpp calls the starter."""

    command: tuple[str, ...]
    rank_variable: str
    serves_pmi: bool
    environment: tuple[tuple[str, str], ...] = ()

    def plan_lines(self) -> list[str]:
        lines = [f"starter {word}" for word in self.command]
        lines.append(f"starter-rank {self.rank_variable}")
        lines += [f"starter-env {name}={value}" for name, value in self.environment]
        return lines + (["starter-pmi"] if self.serves_pmi else [])


@dataclass(frozen=True, kw_only=True)
class Job:
    library: MpiLibrary
    node_of_rank: tuple[str, ...]  # its name
    folder: Path  # of the run
    variables: Mapping[str, str]  # of the ranks
    options: tuple[str, ...] = ()  # more words for the launcher
