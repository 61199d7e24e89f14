"""Asks dryfly-motif, the engine of skeletons: a question becomes a spec and arguments, what it prints an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dryfly.base.deadline import within
from dryfly.base.errors import DryflyError, UserError
from dryfly.base.folder import RunFolder
from dryfly.case import gpus
from dryfly.case.placement import node_blocks
from dryfly.case.resolve import resolve_machine, with_counted_software
from dryfly.mpi import libraries, software
from dryfly.predict import file, memory, selection, skeleton_hpl, skeleton_hplmxp, skeleton_transformer, unmet
from dryfly.predict.answer import Answer
from dryfly.predict.find import is_recording, reading
from dryfly.predict.question import Question
from dryfly.predict.skeleton_transformer import between_gpus
from dryfly.predict.workloads import SKELETON
from dryfly.scenario import faults, noise
from dryfly.skeleton import motif
from dryfly.skeleton.replay import with_costs, without_cpu

_PS_PER_S = 10**12
_BANDWIDTH_BYTES = 131072  # of GPCNeT's test of that name
# On the level `packet`: some ten minutes of a core. Who gives a time for it (--timeout) may have more.
MOST_PACKETS = 500_000_000
_COUNTED = "recursive_doubling"
_OF_FILES = ("selection", "calc", "ranks")  # what these say is passed with the files


def check(question: Question) -> None:
    """Raises UserError for what the engine would have to ignore."""
    if question.software != "none":
        _check_software(question)
    selection.check(question)
    memory.check(question)
    if question.workload == "hpl":
        skeleton_hpl.check(question)
    if question.workload == "hplmxp":
        skeleton_hplmxp.check(question)
    if question.workload == "hpcg":
        _check_levels(question)
    if between_gpus(question):
        skeleton_transformer.check(question)
    spec_of(question)
    _job(question, _nodes(question))
    file.check(question)


def _check_levels(question: Question) -> None:
    """The engine refuses it too; a sweep is to be refused before its first case."""
    local, levels = str(question.parameter("local")), int(question.parameter("levels") or 1)
    multiple = 1 << (levels - 1)
    if any(int(side) % multiple for side in local.split("x")):
        raise UserError(f"local={local}: accepted are multiples of {multiple}, which levels={levels} asks for")


def _check_software(question: Question) -> None:
    """Of the library's own code is known what goes with messages of one size, and with an allreduce of few bytes."""
    flag = f"--software {question.software}"
    if question.workload == "gpcnet":
        if question.parameter("test") == "all" or question.parameter("library") != "mpich":
            raise UserError(
                f"{flag}: a library's own code was counted for messages of one size, and for MPICH's choice of an "
                "allreduce; accepted is one test of gpcnet (test=latency, bandwidth or allreduce) with library=mpich"
            )
        if question.parameter("test") == "allreduce" and _family(question) == "openmpi":
            raise UserError(
                f"--mpi {question.mpi}: the choice of gpcnet's allreduce is MPICH's (library=mpich), and the code that "
                "is charged Open MPI's; accepted is --mpi mpich"
            )
        return
    if not question.row.one_size:
        raise UserError(
            f"{flag}: a library's own code was counted for messages of one size, and {question.workload} has several; "
            "leave it out"
        )
    if question.workload != "allreduce":
        return
    counted = f"a library's own code was counted for an allreduce by {_COUNTED}"
    if int(question.parameter("bytes") or 0) > software.INJECTED_MAX:
        raise UserError(
            f"{flag}: bytes={question.parameter('bytes')}: {counted}; accepted are up to {software.INJECTED_MAX} bytes"
        )
    algorithm = question.parameter("algorithm")
    if algorithm not in (None, _COUNTED):
        raise UserError(f"{flag}: algorithm={algorithm}: {counted}; accepted is algorithm={_COUNTED}")
    others = [name for name in ("library", "selection") if question.parameter(name) is not None]
    if others:
        given, out = f"{others[0]}={question.parameter(others[0])}", f", without {' and '.join(others)}"
        raise UserError(f"{flag}: {given}{_chosen(question)}: {counted}; accepted is algorithm={_COUNTED}{out}")
    if algorithm is None and _family(question) == "openmpi":
        raise UserError(
            f"--mpi {question.mpi}: without algorithm the choice is MPICH's, and the code that is charged Open MPI's; "
            f"accepted is algorithm={_COUNTED}"
        )


def _family(question: Question) -> str:
    """Of the library whose code is charged: by the name alone, so that it need not be set up here."""
    return (question.mpi or "mpich").partition("-")[0]


def _chosen(question: Question) -> str:
    """What the rules that are given say, as the engine has it; empty where it cannot be asked."""
    try:
        said = answer(replace(question, software="none", mpi=None, level="latency", faults=None, noise="none")).chosen
    except DryflyError:
        return ""
    return f" chooses {said[0].partition(': ')[2]}" if said else ""


def _scenario(question: Question) -> faults.Scenario | None:
    """Raises UserError."""
    if question.faults is None:
        return None
    return faults.load(question.faults, question.loaded, seed=question.seed)


def spec_of(question: Question) -> str:
    machine = question.loaded
    scenario = _scenario(question)
    resolved = resolve_machine(
        machine,
        seed=question.seed,
        ranks=question.ranks,
        scenario=scenario,
        noise=noise.load(question.noise, machine),
        network=motif.network_of(question.level or ""),
    )
    spec = resolved + (gpus.spec_lines(machine, of_skeletons=True) if between_gpus(question) else "")
    if is_recording(question.workload):
        return without_cpu(spec)
    if question.charged:
        return with_costs(spec, dict(question.charged))
    if question.software == "none":
        return spec
    library = libraries.select(question.mpi)
    table = software.charged(question.software, library)
    assert table is not None
    own_code = _own_code(question, table)
    return with_counted_software(spec, machine, library.family, own_code, between_gpus=between_gpus(question))


def _own_code(question: Question, table: software.SoftwareTable) -> Mapping[str, float]:
    """Instructions of the library with each message: of its allreduce, or of windows of messages of that size."""
    if "allreduce" in (question.workload, question.parameter("test")):
        return software.of_doubling(table)
    size = _BANDWIDTH_BYTES if question.parameter("test") == "bandwidth" else int(question.parameter("bytes") or 8)
    return software.of_messages(table, size)


def answer(
    question: Question, *, timeout_s: float | None = None, listing: Path | None = None, cores: int | None = None
) -> Answer:
    """`listing`: a file that gets a line for each message."""
    prepared = skeleton_hpl.prepare(question) if question.workload == "hpl" else None
    on = _nodes(question)
    words = [*_job(question, on), *(_arguments(question) if prepared is None else prepared.arguments)]
    with RunFolder() as folder:
        with within(timeout_s, reading(question.workload)):
            words += [*selection.arguments(question, folder.path), *file.arguments(question, folder.path)]
        words += [] if listing is None else [f"messages={listing}"]
        words += [] if cores is None else [f"cores={cores}"]
        words += [f"most_packets={MOST_PACKETS}"] if question.level == "packet" and timeout_s is None else []
        engine = question.row.engine or question.workload
        scenario = _scenario(question)
        try:
            said = motif.ask(spec_of(question), engine, words, timeout_s=timeout_s)
        except UserError as error:
            raise UserError(faults.as_said(str(error), question.loaded, scenario)) from None
    found = _answer_of(question, said)
    if scenario is not None:
        unmet_ones = unmet.warnings(question, scenario, on, file.ranks_in(question))
        found = replace(found, warnings=(*found.warnings, *unmet_ones))
    found = file.completed(found)
    if question.workload == "hplmxp":
        return skeleton_hplmxp.completed(found)
    return found if prepared is None else skeleton_hpl.completed(found, prepared)


def _nodes(question: Question) -> list[int]:
    assert question.nodes is not None
    assert question.ppn is not None
    return node_blocks(
        question.loaded, nodes=question.nodes, ppn=question.ppn, policy=question.place, seed=question.seed
    )


def _job(question: Question, on: Sequence[int]) -> list[str]:
    assert question.ppn is not None
    assert question.level is not None
    return motif.job(on=on, ppn=question.ppn, level=question.level)


def _arguments(question: Question) -> list[str]:
    if question.workload == "hplmxp":
        return skeleton_hplmxp.arguments(question)
    values = {**dict(question.values), **skeleton_transformer.chosen(question)}
    known = [each for each in question.row.of_model(SKELETON) if each.name in values and each.name not in _OF_FILES]
    words = [word for each in known for word in each.arguments(values[each.name])]
    return words + skeleton_transformer.of_gpus(question) if between_gpus(question) else words


def _answer_of(question: Question, said: Mapping[str, Any]) -> Answer:
    return Answer(
        question=question,
        virtual_time_s=said["virtual_ps"] / _PS_PER_S,
        phases={name: took / _PS_PER_S for name, took in said.get("phases", {}).items()},
        figures=dict(said.get("figures", {})),
        values=dict(question.values),
        chosen=tuple(said.get("chosen", ())),
        warnings=tuple(said.get("warnings", ())),
        messages=said.get("messages"),
        bytes=said.get("bytes"),
        events=said.get("events"),
        sampled=bool(said.get("sampled", False)),
        error_bound=said.get("error_bound", 0.0),
        fingerprint=str(said.get("fingerprint", "")),
        wall_s=float(said.get("wall_s", 0)),
        details={name: said[name] for name in ("memory_bytes", "algorithm") if name in said},
    )
