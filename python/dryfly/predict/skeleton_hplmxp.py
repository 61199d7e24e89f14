"""HPL-MxP's skeleton: what it is asked for, of the closed form's problem."""

from __future__ import annotations

from dataclasses import replace

from dryfly.base.errors import UserError
from dryfly.predict import closed_hplmxp
from dryfly.predict.answer import Answer
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


def completed(answer: Answer) -> Answer:
    """With what the closed form says of its own rate too."""
    problem = closed_hplmxp.problem_of(answer.question)
    beside = closed_hplmxp.figures_beside(answer.question, problem, problem.operations / answer.virtual_time_s)
    names = ("rate_flop_per_s", *beside)
    figures = {**answer.figures, **beside}
    return replace(
        answer, figures={name: figures[name] for name in dict.fromkeys((*names, *figures)) if name in figures}
    )
