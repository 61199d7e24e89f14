"""Where HPL's closed form stands beside the published results of a machine: one row has set one parameter, and the
others have set nothing. N and grid are published for that row alone; elsewhere they are as --fit chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dryfly.predict import closed_hpl, facts
from dryfly.predict.question import Question


@dataclass(frozen=True, kw_only=True)
class Standing:
    nodes: int
    n: int
    grid: str
    published: float
    predicted: float
    constant: float  # what the efficiency of the calibrated row gives
    kind: str  # calibrated or predicted

    @property
    def error(self) -> float:
        return self.predicted / self.published - 1

    @property
    def constant_error(self) -> float:
        return self.constant / self.published - 1


def is_known(question: Question) -> bool:
    """For this machine as its file has it, and as many nodes as a result is of: those of others say nothing."""
    published = facts.hpl_published()
    as_it_is = question.machine == published.machine and not question.sets
    return question.workload == "hpl" and as_it_is and question.nodes in {row.nodes for row in published.rows}


def standings(question: Question) -> Sequence[Standing]:
    """With the parameters that the question gives, but order, block and grid."""
    published = facts.hpl_published()
    own = tuple(pair for pair in question.parameters if pair[0] not in ("n", "nb", "grid"))
    calibrated = next(row for row in published.rows if row.nodes == published.calibrated)
    # With a choice undone even the row that the parameter was set on is none that was met by setting it.
    undone = closed_hpl.undone(question)
    rows = []
    for row in published.rows:
        is_calibrated = row.nodes == published.calibrated
        given = (("n", str(published.n)), ("grid", published.grid)) if is_calibrated else ()
        answer = closed_hpl.answer(
            replace(
                question,
                nodes=row.nodes,
                ppn=published.ppn,
                fit=False,
                parameters=(*own, ("nb", str(published.nb)), *given),
            )
        )
        rows.append(
            Standing(
                nodes=row.nodes,
                n=int(answer.values["n"]),
                grid=answer.values["grid"],
                published=row.rate,
                predicted=answer.figures["rate_flop_per_s"],
                constant=calibrated.rate / calibrated.nodes * row.nodes,
                kind="calibrated" if is_calibrated and answer.calibrated and not undone else "predicted",
            )
        )
    return rows
