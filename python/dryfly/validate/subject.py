"""What is validated, and who measures it: a simulated machine (simulated.py, measuring.py) or a real cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dryfly.base.errors import RunError
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
    unmeasured: Mapping[str, str] = field(default_factory=dict)  # measures that cannot be taken, and why


class NodeFailed(RunError):  # noqa: N818
    """Steps could not be measured: a rank of this node has died, or the node does not answer any more."""

    def __init__(self, node: int, message: str) -> None:
        super().__init__(message, exit_status=1)
        self.node = node


class Measuring(Protocol):
    def measure(self, steps: Sequence[Step], nodes: Sequence[int], at_s: float) -> tuple[list[Measured], Figures]:
        """The subject as it is `at_s` after the start, and the figures expected. Raises UserError, RunError,
        NodeFailed."""
        ...

    def again(
        self, steps: Sequence[Step], nodes: Sequence[int], at_s: float, common: Mapping[str, float]
    ) -> tuple[list[Measured], Figures]:
        """Of suspects, and the figures they would have now were they in order, with what all parts of a measure share
        (`common`). Raises as measure does."""
        ...
