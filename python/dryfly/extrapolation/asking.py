"""A written skeleton, asked as any workload of `dryfly predict`: faults, noise and sweeps are by the same code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.printer import Printer
from dryfly.extrapolation.playing import charged, library_of
from dryfly.extrapolation.recording import Recording
from dryfly.predict import ask, predict, skeleton, sweep
from dryfly.predict.question import Question
from dryfly.predict.workloads import PYTHON
from dryfly.skeleton import Played, Where

_DECIDE_NODES = frozenset(("ranks", "ppn"))


def base(
    file: str, ranks: int, where: Where, recording: Recording, *, faults: str | None, noise: str
) -> dict[str, Any]:
    """Fields of its question: calls cost what they cost in the recordings, and the library chooses that was theirs."""
    return {
        "workload": file,
        "machine": where.machine,
        "sets": where.sets,
        "nodes": where.nodes,
        "ppn": where.ppn,
        "place": where.place,
        "level": where.level,
        "seed": where.seed,
        "faults": faults,
        "noise": noise,
        "parameters": (("on_node", where.on_node), ("library", library_of(recording)), ("ranks", str(ranks))),
        "charged": tuple(charged(recording).items()),
    }


def played(fields: Mapping[str, Any]) -> Played:
    """Raises UserError."""
    question = Question(**fields)
    ask.check(question)
    answer = skeleton.answer(question)
    return Played(
        virtual_time_s=answer.virtual_time_s,
        messages=answer.messages or 0,
        bytes=answer.bytes or 0,
        events=answer.events or 0,
        phases=answer.phases,
        figures=answer.figures,
        fingerprint=answer.fingerprint,
        wall_s=answer.wall_s,
    )


def axes_of(sweeps: Sequence[str], given: Mapping[str, Any], written: frozenset[str]) -> list[sweep.Axis]:
    """`given`: options by name. Raises UserError."""
    axes = [sweep.axis_of(text, PYTHON, "a skeleton that is written here") for text in sweeps]
    sweep.check_given(axes, given, written)
    return axes


def ranks_of(given: int | None, axes: Sequence[sweep.Axis]) -> int:
    """Raises UserError: nobody says how many, or what is swept is no number."""
    if given is not None:
        return given
    swept_ranks = next((each.values[0] for each in axes if each.name == "ranks"), None)
    if swept_ranks is None:
        raise UserError("how many ranks is missing: give -n R, or --sweep ranks=R1,R2,...")
    (parameter,) = (each for each in PYTHON.parameters if each.name == "ranks")
    try:
        return int(parameter.value(swept_ranks))
    except UserError as error:
        raise UserError(f"--sweep {error}") from None


def check(fields: Mapping[str, Any], axes: Sequence[sweep.Axis], written: frozenset[str]) -> None:
    """All cases, before the first is played. Raises UserError."""
    if axes:
        sweep.cases(_of_sweep(fields, axes, written), axes)


def swept(
    fields: Mapping[str, Any], axes: Sequence[sweep.Axis], written: frozenset[str], printer: Printer
) -> tuple[int, dict[str, Any]]:
    """The exit status, and all answers. Raises UserError."""
    return predict.many(_of_sweep(fields, axes, written), axes, predict.How(), printer)


def _of_sweep(fields: Mapping[str, Any], axes: Sequence[sweep.Axis], written: frozenset[str]) -> dict[str, Any]:
    """Ranks and nodes are those of --ranks unless they are swept; nodes follow from both where nobody gives them."""
    names = {each.name for each in axes}
    content = dict(fields)
    content["parameters"] = tuple(pair for pair in fields["parameters"] if pair[0] not in names)
    if "nodes" not in written and names & _DECIDE_NODES:
        content["nodes"] = None
    return content
