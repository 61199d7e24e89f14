"""What is validated, and who measures it: a simulated machine (simulated.py, measuring.py) or a real cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dryfly.validate.console import Console
from dryfly.validate.judge import Figures
from dryfly.validate.plan import Step
from dryfly.validate.probe import Measured
from dryfly.validate.wiring import Wiring


@dataclass(frozen=True, kw_only=True)
class Subject:
    name: str  # of the machine
    nodes: tuple[int, ...]
    wiring: Wiring
    console: Console
    timeout_s: float  # of a packet: a step that takes as long has lost one


class Measuring(Protocol):
    def measure(self, steps: Sequence[Step], nodes: Sequence[int], at_s: float) -> tuple[list[Measured], Figures]:
        """The subject as it is `at_s` after the start, and the figures expected. Raises UserError, RunError."""
        ...
