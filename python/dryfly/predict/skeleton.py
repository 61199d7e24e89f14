"""Asks dryfly-motif, the engine of skeletons: a question becomes a spec and arguments, what it prints an answer."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import MOTIF, native
from dryfly.base.signals import dying_with_parent
from dryfly.case.resolve import resolve_machine, with_counted_software
from dryfly.mpi import libraries, software
from dryfly.predict import skeleton_hpl
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question
from dryfly.predict.workloads import SKELETON
from dryfly.scenario import faults, noise

_PS_PER_S = 10**12
_BAD_INPUT = 2

# By flag, what the engine does not take yet: the levels at which it is refused. A flag that says nothing is taken.
_NOT_TAKEN: Mapping[str, tuple[str, ...]] = {
    "place": ("latency", "links", "packet", "flow"),
}
_SILENT = {"place": "packed"}


def check(question: Question) -> None:
    """Raises UserError for what the engine would have to ignore."""
    for name, levels in _NOT_TAKEN.items():
        value = getattr(question, name)
        if value != _SILENT[name] and question.level in levels:
            raise UserError(f"--{name} {value}: skeletons at --level {question.level} do not take it yet; leave it out")
    if any(node < (question.nodes or 0) for node in faults.down_nodes(question.loaded)):
        raise UserError(
            f"machine {question.machine}: one of its first {question.nodes} nodes is down, and skeletons take the first"
        )
    if question.workload == "hpl":
        skeleton_hpl.check(question)
    spec_of(question)


def spec_of(question: Question) -> str:
    machine = question.loaded
    scenario = None if question.faults is None else faults.load(question.faults, machine, seed=question.seed)
    spec = resolve_machine(
        machine,
        seed=question.seed,
        ranks=question.ranks,
        scenario=scenario,
        noise=noise.load(question.noise, machine),
        network="flow" if question.level == "flow" else "packet",
    )
    if question.software == "none":
        return spec
    table = software.charged(question.software, libraries.select(question.mpi))
    assert table is not None
    return with_counted_software(spec, machine, _own_code(question, table))


def _own_code(question: Question, table: software.SoftwareTable) -> Mapping[str, float]:
    """Instructions of the library with each message: of its allreduce, or of windows of messages of that size."""
    if question.workload == "allreduce":
        return software.of_doubling(table)
    return software.of_messages(table, int(question.parameter("bytes") or 8))


def digest() -> str:
    """Of the engine: another build may answer otherwise."""
    path = native(MOTIF)
    about = path.stat()
    return _digest(str(path), about.st_size, about.st_mtime_ns)


@cache
def _digest(path: str, _size: int, _modified: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def answer(question: Question, *, timeout_s: float | None = None) -> Answer:
    prepared = skeleton_hpl.prepare(question) if question.workload == "hpl" else None
    arguments = _arguments(question) if prepared is None else prepared.arguments
    with RunFolder() as made:
        spec = made.path / "spec"
        spec.write_text(spec_of(question), encoding="utf-8")
        found = _answer_of(question, _asked(_command(question, spec, arguments), question, timeout_s))
    return found if prepared is None else skeleton_hpl.completed(found, prepared)


def _command(question: Question, spec: Path, arguments: list[str]) -> list[str]:
    words = [f"nodes={question.nodes}", f"ppn={question.ppn}", f"level={question.level}"]
    return [str(native(MOTIF)), str(spec), question.workload, *words, *arguments]


def _arguments(question: Question) -> list[str]:
    values = dict(question.values)
    known = [each for each in question.row.of_model(SKELETON) if each.name in values]
    return [word for each in known for word in each.arguments(values[each.name])]


def _asked(command: list[str], question: Question, timeout_s: float | None) -> dict[str, Any]:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout_s,
            preexec_fn=dying_with_parent(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RunError(f"{question.workload} has not ended after {timeout_s:g} s", exit_status=1) from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        sentence = lines[-1] if lines else f"{MOTIF} ended with status {done.returncode}"
        sentence = sentence.removeprefix(f"{MOTIF}: ").removeprefix("dryfly: ")
        if done.returncode == _BAD_INPUT:
            raise UserError(sentence)
        raise RunError(sentence, exit_status=1)
    try:
        content = json.loads(done.stdout)
    except ValueError:
        raise RunError(f"{MOTIF} has printed no result: {done.stdout[:80]!r}", exit_status=1) from None
    assert isinstance(content, dict)
    return content


def _answer_of(question: Question, said: Mapping[str, Any]) -> Answer:
    return Answer(
        question=question,
        virtual_time_s=said["virtual_ps"] / _PS_PER_S,
        phases={name: took / _PS_PER_S for name, took in said.get("phases", {}).items()},
        figures=dict(said.get("figures", {})),
        values=dict(question.values),
        warnings=tuple(said.get("warnings", ())),
        messages=said.get("messages"),
        bytes=said.get("bytes"),
        events=said.get("events"),
        sampled=bool(said.get("sampled", False)),
        error_bound=float(said.get("error_bound", 0)),
        fingerprint=str(said.get("fingerprint", "")),
        wall_s=float(said.get("wall_s", 0)),
        details={name: said[name] for name in ("memory_bytes", "algorithm") if name in said},
    )
