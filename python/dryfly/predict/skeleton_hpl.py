"""HPL's skeleton: the arguments that follow from the machine, and a problem where none is given, as --fit chooses it.

The closed form answers beside it: where the two part is what queues, skew and the messages' own order cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dryfly.machine.node import most_nics, node_of
from dryfly.oracle import hpl
from dryfly.predict import closed_hpl, figure, fit
from dryfly.predict.answer import Answer
from dryfly.predict.closed_hpl import process_of
from dryfly.predict.parameter import Parameter
from dryfly.predict.question import Question
from dryfly.predict.workloads import SKELETON

# What is asked of dryfly-motif under other names, or not at all: the rest is the closed form's alone.
_NOT_PASSED = frozenset(
    ("n", "nb", "grid", "swap_nics", "gemm_exposed", "gemm_tile", "gemm_tiles", "triangle_share", "panel_share",
     "panel_share_gpu", "panel_base", "panel_cores", "memory_share")
)  # fmt: skip


_MANY = 8192  # ranks beyond which a sample is short
_SHORT = {"stretches": "6", "stretch": "2", "warm": "1", "rounds": "4"}
_PART, _PARTS = 64 * 1024, 16  # bytes of a part of a message, and how many a panel has at most


@dataclass(frozen=True, kw_only=True)
class Prepared:
    arguments: list[str]
    values: dict[str, str]
    choice: fit.Choice
    closed_time_s: float


def prepare(question: Question) -> Prepared:
    machine = question.loaded
    choice = fit.choose(question, lambda problem: process_of(machine, question, problem))
    problem = choice.problem
    process = process_of(machine, question, problem)
    arguments = [f"n={problem.order}", f"nb={problem.block}", f"p={problem.rows}", f"q={problem.columns}"]
    for parameter in question.row.of_model(SKELETON):
        arguments += _plain(question, parameter)
    short = _short_sample(question)
    arguments += [f"{name}={value}" for name, value in short.items()]
    if question.parameter("part") is None:
        arguments.append(f"part={max(_PART, hpl.WORD * problem.block * (problem.order // problem.rows) // _PARTS)}")
    arguments += _nics(question)
    gpus = machine.optional("compute.gpu.count")
    if gpus:
        arguments += [f"gpus={gpus}", f"pcie_bytes_per_s={round(min(process.copy_in, process.copy_out))}"]
    if question.parameter("panel_cores") == "node":
        assert question.ppn is not None
        together = closed_hpl.panels_at_once(dict(question.values), question.ppn, problem)
        arguments.append(f"panel_ranks={together}")
    if process.panel_cache:
        arguments.append(f"panel_cache={round(process.panel_cache)}")
    # Steps of k that are lost to a tile take as long as what it reads and writes unhidden.
    lost = process.gemm_exposed * hpl.WORD * process.gemm_rate / process.gemm_memory
    arguments += [f"gemm_tile={process.gemm_tile}", f"gemm_units={process.gemm_tiles}", f"gemm_fill={round(lost)}"]
    values = {
        **dict(question.values),
        **short,
        "n": str(problem.order),
        "nb": str(problem.block),
        "grid": f"{problem.rows}x{problem.columns}",
    }
    return Prepared(
        arguments=arguments,
        values=values,
        choice=choice,
        closed_time_s=hpl.outcome(problem, process).time,
    )


def _short_sample(question: Question) -> dict[str, str]:
    """Of so many ranks a minute's worth, unless more or less is asked for."""
    if question.ranks <= _MANY or question.parameter("full") == "1":
        return {}
    return {name: value for name, value in _SHORT.items() if question.parameter(name) is None}


def check(question: Question) -> None:
    """Raises UserError."""
    closed_hpl.check(question)


def completed(answer: Answer, prepared: Prepared) -> Answer:
    """With what was chosen for it, and what the closed form says: its time, not its doubts."""
    asked = answer.question
    problem = prepared.choice.problem
    beside = closed_hpl.figures_beside(asked, problem, problem.operations / answer.virtual_time_s)
    return replace(
        answer,
        figures={**figure.main(answer.figures), **beside, **answer.figures},
        values=prepared.values,
        chosen=(*closed_hpl.solver_reason(asked), *prepared.choice.reasons, *_short_reason(asked), *answer.chosen),
        calibrated=closed_hpl.calibrated(asked),
        details={**answer.details, "closed_time_s": prepared.closed_time_s},
    )


def _short_reason(question: Question) -> list[str]:
    short = _short_sample(question)
    if not short:
        return []
    told = ", ".join(f"{name}={value}" for name, value in short.items())
    more = ": rounds lumped to so many change 1 to 2 %, which no bound has" if "rounds" in short else ""
    return [f"of more than {_MANY:,} ranks a short sample: {told}{more}"]


def _plain(question: Question, parameter: Parameter) -> list[str]:
    value = question.parameter(parameter.name)
    return [] if parameter.name in _NOT_PASSED or value is None else parameter.arguments(value)


def _nics(question: Question) -> list[str]:
    """The numbers of those of each phase, where phases have their own: the first ones of each socket swap."""
    machine = question.loaded
    nics = closed_hpl.nics_of(machine, dict(question.values))
    if not nics.swap:
        return []
    node = node_of(machine, nics=most_nics(machine))
    of_socket = nics.swap // node.sockets
    swap: list[int] = []
    broadcast: list[int] = []
    for socket in range(node.sockets):
        there = [nic for nic, domain in enumerate(node.nic_domains) if node.socket(domain) == socket]
        swap += there[:of_socket]
        broadcast += there[of_socket:]
    return [
        f"{name}={','.join(map(str, numbers))}" for name, numbers in (("swap_nics", swap), ("bcast_nics", broadcast))
    ]
