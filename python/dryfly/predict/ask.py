"""One question to whichever model answers it, and the key under which its answer is kept."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dryfly.base.paths import data_folder
from dryfly.predict import campaign, closed_hpl, closed_hplmxp, closed_startup, file, selection, skeleton
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question
from dryfly.predict.workloads import SKELETON
from dryfly.skeleton import motif

_PACKAGE = Path(__file__).resolve().parent.parent
# Of closed forms and of what is drawn, by workload.
_CHECKS = {
    "hpl": closed_hpl.check, "hplmxp": closed_hplmxp.check, "campaign": campaign.check, "startup": closed_startup.check,
}  # fmt: skip
_ANSWERS = {
    "hpl": closed_hpl.answer, "hplmxp": closed_hplmxp.answer, "campaign": campaign.answer,
    "startup": closed_startup.answer,
}  # fmt: skip


def check(question: Question) -> None:
    """Whatever can be refused before anything starts; raises UserError."""
    if question.model != SKELETON:
        _CHECKS[question.workload](question)
    else:
        skeleton.check(question)


def ask(question: Question, *, timeout_s: float | None = None, cores: int | None = None) -> Answer:
    """`cores`: what a skeleton may use of this computer's, 1 or 2, in place of what its size suggests."""
    if question.model != SKELETON:
        return _ANSWERS[question.workload](question)
    return skeleton.answer(question, timeout_s=timeout_s, cores=cores)


def key(question: Question) -> str:
    """Of the answer: the machine as it is now, the files that are named, and what computes it."""
    by = [] if question.model != SKELETON else [motif.digest()]
    by += [_own_digest()] if question.workload in _ANSWERS else []
    files = [selection.rules_of(question), file.digest(question), campaign.policy_text(question)]
    return question.key({"spec": skeleton.spec_of(question), "facts": _facts(question), "files": files, "by": by})


def _facts(question: Question) -> list[tuple[str, str]]:
    return sorted((path, str(fact.value)) for path, fact in question.loaded.facts.items())


@cache
def _own_digest() -> str:
    """Of all that answers without dryfly-motif. HPL's skeleton has its arguments from the closed form, and its time
    beside it."""
    files = [data_folder() / "predict" / f"{name}.toml" for name in _ANSWERS]
    files += [_PACKAGE / "oracle" / f"{name}.py" for name in _ANSWERS]  # one takes from the other
    names = (
        "closed_hpl",
        "closed_hplmxp",
        "closed_startup",
        "campaign",
        "fit",
        "facts",
        "skeleton_hpl",
        "skeleton_hplmxp",
    )
    files += [_PACKAGE / "predict" / f"{name}.py" for name in names]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
