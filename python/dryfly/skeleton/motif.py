"""Asks dryfly-motif, the engine of skeletons; nobody else starts it."""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import MOTIF, native
from dryfly.base.signals import dying_with_parent
from dryfly.base.units import size_text

_BAD_INPUT = 2
_WITHOUT_MEMORY = 3
_BAD_ALLOC = "std::bad_alloc"
_WORD_MAX = 32 * 4096  # that Linux lets a program be given


def network_of(level: str) -> str:
    """The model of the network that a spec has to have for the engine to run it at that level."""
    return "flow" if level == "flow" else "packet"


def job(*, on: Sequence[int], ppn: int, level: str) -> list[str]:
    """The words for where ranks are: `ppn` in a row on each of the nodes `on`, numbers as in `node_blocks`.
    Raises UserError."""
    words = [f"nodes={len(on)}", f"ppn={ppn}", f"level={level}"]
    if list(on) == list(range(len(on))):
        return words  # these it takes by itself
    listed = f"on={','.join(map(str, on))}"
    if len(listed) >= _WORD_MAX:
        raise UserError(
            f"{len(on)} nodes, not the machine's first ones: accepted are as many as {_WORD_MAX} bytes name"
        )
    return [*words, listed]


def ask(spec: str, workload: str, words: Iterable[str], *, timeout_s: float | None = None) -> dict[str, Any]:
    """What it has printed. Raises UserError with the engine's sentence for what cannot be used, RunError where it fails
    or takes more than `timeout_s` of wall time."""
    with RunFolder() as folder:
        file = folder.path / "spec"
        file.write_text(spec, encoding="utf-8")
        command = [str(native(MOTIF)), str(file), workload, *words]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout_s,
                preexec_fn=dying_with_parent(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError(f"{workload} has not ended after {timeout_s:g} s", exit_status=1) from None
    aborted = done.returncode == -signal.SIGABRT and _BAD_ALLOC in done.stderr  # in a thread of its
    if done.returncode in (_WITHOUT_MEMORY, -signal.SIGKILL) or aborted:
        killed = done.returncode == -signal.SIGKILL
        raise RunError(_too_large(workload, command, killed=killed), exit_status=1)
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


def _too_large(workload: str, words: Sequence[str], *, killed: bool) -> str:
    given = dict(word.partition("=")[::2] for word in words)
    ranks = int(given.get("nodes", 1)) * int(given.get("ppn", 1))
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    most = "" if limit == resource.RLIM_INFINITY else f" (ulimit -v: {size_text(limit)})"
    level = given.get("level", "")
    other = "" if level == "latency" else ", or at a level that needs less (--level latency)"
    what = "were killed, as the system does where memory is short" if killed else "need more memory than there is"
    return (
        f"{workload}: {ranks:,} ranks at level {level} {what}{most}; accepted are fewer nodes or ranks of a node "
        f"(--nodes, --ppn){other}"
    )


def digest() -> str:
    """Of the engine: another build may answer otherwise."""
    path = native(MOTIF)
    about = path.stat()
    return _digest(str(path), about.st_size, about.st_mtime_ns)


@cache
def _digest(path: str, _size: int, _modified: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
