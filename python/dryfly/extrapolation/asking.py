"""A written skeleton, asked as any workload of `dryfly predict`: faults, noise and sweeps are by the same code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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


def swept(
    fields: Mapping[str, Any], axes: Sequence[sweep.Axis], written: frozenset[str], printer: Printer
) -> tuple[int, dict[str, Any]]:
    """The exit status, and all answers. Ranks and nodes are those of --ranks unless they are swept; nodes follow from
    both where nobody gives them. Raises UserError."""
    names = {each.name for each in axes}
    content = dict(fields)
    content["parameters"] = tuple(pair for pair in fields["parameters"] if pair[0] not in names)
    if "nodes" not in written and names & _DECIDE_NODES:
        content["nodes"] = None
    return predict.many(content, axes, predict.How(), printer)
