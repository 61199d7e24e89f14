"""One question to whichever model answers it, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dryfly.base.paths import data_folder
from dryfly.predict import closed_hpl, file, selection, skeleton
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question
from dryfly.predict.workloads import CLOSED
from dryfly.skeleton import motif

_PACKAGE = Path(__file__).resolve().parent.parent


def check(question: Question) -> None:
    """Whatever can be refused before anything starts; raises UserError."""
    if question.model == CLOSED:
        closed_hpl.check(question)
    else:
        skeleton.check(question)


def ask(question: Question, *, timeout_s: float | None = None) -> Answer:
    if question.model == CLOSED:
        return closed_hpl.answer(question)
    return skeleton.answer(question, timeout_s=timeout_s)


def key(question: Question) -> str:
    """Of the answer: the machine as it is now, the files that are named, and what computes it."""
    by = [] if question.model == CLOSED else [motif.digest()]
    by += [_closed_digest()] if question.workload == "hpl" else []
    files = [selection.rules_of(question), file.digest(question)]
    return question.key({"spec": skeleton.spec_of(question), "facts": _facts(question), "files": files, "by": by})


def _facts(question: Question) -> list[tuple[str, str]]:
    return sorted((path, str(fact.value)) for path, fact in question.loaded.facts.items())


@cache
def _closed_digest() -> str:
    """HPL's skeleton has its arguments from the closed form, and its time beside it."""
    files = [data_folder() / "predict" / "hpl.toml", _PACKAGE / "oracle" / "hpl.py"]
    files += [_PACKAGE / "predict" / f"{name}.py" for name in ("closed_hpl", "fit", "facts", "skeleton_hpl")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
