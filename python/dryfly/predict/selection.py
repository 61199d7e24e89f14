"""Who chooses a collective's algorithm: `selection=FILE` is a tuning file of `library`, asked before its own choice."""

from __future__ import annotations

from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.mpi.selection import rules
from dryfly.predict.question import Question

_CHOICES = ("library", "selection")
_WITHOUT_FILES = ("rccl", "oneccl")
_OF_GPUS = ("allreduce", "allgather", "reduce_scatter_block")
_OF_SAMPLES = ("full", "stretches", "stretch")


def check(question: Question) -> None:
    """Raises UserError for a file that cannot be used, and for what has no effect beside other parameters."""
    values = dict(question.values)
    _refuse(values, _CHOICES, beside=("algorithm",), why="nothing is chosen")
    if question.workload == "alltoall":
        _refuse(values, _OF_SAMPLES, beside=("algorithm", *_CHOICES), why="all of it is run")
    if "selection" in values and values.get("library") in _WITHOUT_FILES:
        raise UserError(
            f"selection={values['selection']}: library={values['library']} has no tuning files; "
            "accepted is mpich or openmpi"
        )
    _check_gpus(question, values)
    rules_of(question)


def _check_gpus(question: Question, values: dict[str, str]) -> None:
    """Libraries for GPUs, and their algorithms, send from the memory of these."""
    library, algorithm = values.get("library"), values.get("algorithm", "")
    chosen = f"library={library}" if library in _WITHOUT_FILES else f"algorithm={algorithm}"
    is_of_gpus = library in _WITHOUT_FILES or algorithm.startswith("gpu_")
    if not is_of_gpus or question.workload == "transformer":
        return
    if question.workload not in _OF_GPUS:
        raise UserError(f"{chosen}: accepted is {', '.join(_OF_GPUS[:-1])} or {_OF_GPUS[-1]}, not {question.workload}")
    if values.get("on_node") != "gpu":
        raise UserError(f"{chosen}: its buffers are in GPUs' memory; accepted is with on_node=gpu")


def _refuse(values: dict[str, str], names: tuple[str, ...], *, beside: tuple[str, ...], why: str) -> None:
    for name in names:
        for other in beside:
            if name in values and other in values:
                raise UserError(
                    f"{name}={values[name]}: with {other}={values[other]} {why}; accepted is one of the two"
                )


def rules_of(question: Question) -> str:
    """As the engine reads them; empty without a file. Raises UserError."""
    file = question.parameter("selection")
    return "" if file is None else rules(Path(file), library=question.parameter("library") or "mpich")


def arguments(question: Question, folder: Path) -> list[str]:
    """For the engine, with a file in that folder."""
    if question.parameter("selection") is None:
        return []
    file = folder / "rules"
    file.write_text(rules_of(question), encoding="utf-8")
    return [f"selection={file}"]
