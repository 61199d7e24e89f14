"""HPL-MxP's skeleton: what it is asked for, of the closed form's problem."""

from __future__ import annotations

from dryfly.base.errors import UserError
from dryfly.predict import closed_hplmxp
from dryfly.predict.question import Question


def check(question: Question) -> None:
    """Raises UserError. A matrix that fills the memory has too many panels to run."""
    if question.parameter("n") is None:
        raise UserError("hplmxp: --model skeleton runs every panel: n is missing; accepted is one such as n=40000")
    closed_hplmxp.check_memory(question)


def arguments(question: Question) -> list[str]:
    problem = closed_hplmxp.problem_of(question)
    return [
        f"n={problem.order}",
        f"nb={problem.block}",
        f"p={problem.rows}",
        f"q={problem.columns}",
        f"pmap={question.parameter('pmap')}",
        f"element={problem.element}",
        f"corrections={problem.corrections}",
        f"on_node={question.parameter('on_node')}",
    ]
