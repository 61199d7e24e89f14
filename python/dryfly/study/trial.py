"""Cases run in processes of their own, several at a time, and their results kept.

A result is kept under a hash of the case and of everything else that can change it, and is taken from there the next
time.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dryfly import __version__
from dryfly.apps import solver
from dryfly.base.folder import RunFolder
from dryfly.base.paths import CONDUCTOR, LAUNCHER, PRELOAD, PROVIDER, native
from dryfly.base.signals import dying_with_parent
from dryfly.base.store import Store
from dryfly.binding.ranks import RankBinding, node_words
from dryfly.case import environment, hwloc, program
from dryfly.case.bind import bind, library_of, settled, starter_of
from dryfly.case.case import Case
from dryfly.case.resolve import with_counted_software
from dryfly.machine.node import most_nics, node_of
from dryfly.mpi import libraries, software
from dryfly.mpi.libraries import MpiLibrary
from dryfly.run.runner import Runner, command_line, environment_of, with_files
from dryfly.study.kept import Entry

Result = dict[str, Any]

_PACKAGE = Path(__file__).resolve().parent.parent
_BINDING = ("cpu_bind", "depth", "mem_bind", "gpu_bind", "nic_bind", "launcher_options")  # as given: doubts name them
_END_WITHIN_S = 10.0
_SAID_LINES = 12  # of what a run that failed has said


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A case whose result is kept by its key."""

    case: Case
    label: str = field(default="", compare=False)  # for people
    sources: tuple[Path, ...] = ()  # files whose content counts for the key
    recorded: bool = False  # with a recording, of which `digest` keeps something
    whole: bool = False  # all of the result is kept, under "result"
    digest: Callable[[Path], Result] | None = field(default=None, compare=False)
    timeout_s: float | None = None
    folder: Path | None = None  # where it runs; None: here
    entry: Entry = field(default=Entry(), compare=False)  # what the user keeps of it

    def key(self) -> str:
        """Of the result. Raises UserError for a machine, a place on it or a library that is not there."""
        case = self.case
        # A commit may have to build the program first, and its work tree is not here.
        needed, linked = "", ""
        if self.folder is None:
            needed, linked = program.family(case.program), program.linked_family(case.program)
        library = library_of(case, needed=needed)
        about = Path(library.libmpi).stat()
        bound = settled(bind(case), library)
        starter_of(bound, library)
        node = node_of(bound.machine, nics=most_nics(bound.machine))
        content = {
            "spec": bound.spec,
            "mpi": [library.name, library.libmpi, about.st_size, about.st_mtime_ns],
            "environment": sorted({**environment.of_libraries(os.environ), **dict(case.environment)}.items()),
            "command": [Path(case.program[0]).name, *case.program[1:]],  # its content is among the sources
            "flags": [case.provider, case.launcher, *(getattr(case, name) for name in _BINDING)],
            "node": [hwloc.xml(bound.machine), node_words(node), *map(_binding_words, bound.bindings)],
            "sources": [_file_hash(path) for path in self._all_sources(library)],
            "recorded": [self.recorded, self.whole],
            "dryfly": [__version__, *program_hashes()],
        }
        if software.charged(case.software, library) is not None:
            content["spec"] = with_counted_software(bound.spec, bound.machine, library.family)
            tables = [_file_hash(path) for path in software.files_of(library.name)]
            content["software"] = [str(bound.machine.number("host.instruction")), *tables]
        if case.mpi is None and not linked:  # it may turn out to use another one (run/other_family.py)
            content["mpis"] = [[each.name, each.libmpi] for each in libraries.installed()]
        if case.compute.startswith("replay:"):
            content["replay"] = _file_hash(Path(case.compute.removeprefix("replay:")))
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]

    def _all_sources(self, library: MpiLibrary) -> list[Path]:
        return [path for source in self.sources for path in (source, *program.included(source, mpi=library))]

    def line(self, json_file: Path, record_folder: Path | None) -> list[str]:
        record, trace = (None if path is None else str(path) for path in (record_folder, self.entry.trace))
        runner = Runner(json=str(json_file), record=record, trace=trace, timeout_s=self.timeout_s, quiet=True)
        return command_line(with_files(self.case, json_file.parent), runner)


def _binding_words(binding: RankBinding) -> str:
    return f"{binding.words()} gpus={binding.gpus} nic={binding.nic}"


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def program_hashes() -> list[str]:
    """Of the simulator, and of what decides the environment of a rank."""
    parts = [native(part) for part in (CONDUCTOR, LAUNCHER, PROVIDER, PRELOAD)]
    decide = [
        _PACKAGE / f"{name}.py"
        for name in (
            "case/environment",
            "case/hwloc",
            "case/node_files",
            "mpi/linkx",
            "case/nics",
            "mpi/openmpi",
            "mpi/preload",
            "mpi/software",
            "case/traffic_class",
        )
    ]
    return [_file_hash(path) for path in (*parts, *decide)]


@contextmanager
def _undisturbed() -> Iterator[set[signal.Signals]]:
    """Ctrl-C waits until this is over. What it gives is the mask from before, which a child must have."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield {number for number in mask if isinstance(number, signal.Signals)}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


class _Run:
    def __init__(self, trial: Trial, mask: set[signal.Signals]) -> None:
        """`mask`: of the signals that the run does not get."""
        self.trial = trial
        self._folder = RunFolder()
        base = self._folder.path
        self._json = base / "run.json"
        self._record = trial.entry.record or (base / "record" if trial.recorded else None)
        self._started = time.monotonic()
        die_with_parent = dying_with_parent()

        def prepare() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            die_with_parent()

        with (base / "stdout").open("wb") as out, (base / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                trial.line(self._json, self._record),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=trial.folder,
                env=environment_of(trial.case),
                start_new_session=True,  # Ctrl-C reaches this process, which then ends them
                preexec_fn=prepare,
            )
        self.pidfd = os.pidfd_open(self.process.pid)

    def result(self) -> Result:
        """After the end. `failure` is one sentence, empty when all went well."""
        status = self.process.wait()
        if self.trial.case.skip_numerics and status == solver.NOT_SOLVED and self._json.is_file():
            status = 0  # without numerics nothing is solved; the times are what the run was for
        base = self._folder.path
        output, said = ((base / name).read_text(errors="replace") for name in ("stdout", "stderr"))
        result: Result = {"status": status, "output": output, "wall_time_s": round(time.monotonic() - self._started, 2)}
        result["failure"] = _failure(status, said)
        result["said"] = said.splitlines()[-_SAID_LINES:] if status else []
        if status == 0:
            content = json.loads(self._json.read_text(encoding="utf-8"))
            names = ("virtual_time_s", "messages", "bytes", "protocols", "fingerprint", "repeatable", "health")
            result |= {name: content[name] for name in names}
            if self.trial.case.software != "none":
                result["software"] = content["software"]
            if self.trial.whole:
                result["result"] = content
            if self._record is not None and self.trial.digest is not None:
                result["digest"] = self.trial.digest(self._record)
        return result

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_END_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.pidfd)
        self._folder.remove()


def _failure(status: int, said: str) -> str:
    if status == 0:
        return ""
    lines = [line for line in said.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("dryfly: ") and not line.startswith("dryfly: warning")]
    # What a program says about its options is the cause; dryfly only says that it has ended.
    if status == 2 and ours and "exited with status 2" in ours[-1] and lines[0] not in ours:
        return lines[0]
    return (ours or lines or [f"dryfly run ended with status {status}"])[-1].removeprefix("dryfly: ")


def run_all(
    trials: Iterable[Trial], store: Store, *, jobs: int, done: Callable[[Trial, Result, bool], None]
) -> dict[Trial, Result]:
    """Each trial once, at most `jobs` at a time; `done` hears of each, and whether it was kept from before."""
    results: dict[Trial, Result] = {}
    waiting: list[tuple[str, Trial]] = []
    for trial in dict.fromkeys(trials):
        key = trial.key()
        kept = store.get(key) if trial.entry.is_there else None
        if kept is None:
            waiting.append((key, trial))
        else:
            results[trial] = kept
            done(trial, kept, True)
    running: dict[int, tuple[str, _Run]] = {}
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of what follows
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                key, trial = waiting.pop(0)
                with _undisturbed() as mask:  # a child that nobody knows of would go on
                    run = _Run(trial, mask)
                    running[run.pidfd] = (key, run)
            for pidfd in _ended(list(running)):
                key, run = running[pidfd]
                result = run.result()
                with _undisturbed():
                    del running[pidfd]
                    run.close()
                if not result["failure"]:
                    store.put(key, result)
                results[run.trial] = result
                done(run.trial, result, False)
    finally:
        with _undisturbed():
            for _, run in running.values():
                run.close()
        signal.signal(signal.SIGTERM, before)
    return results


def _ended(pidfds: Sequence[int]) -> list[int]:
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    return [pidfd for pidfd, _ in poll.poll()]
