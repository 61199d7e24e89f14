"""What all end-to-end tests share: the `dryfly` command, compiled programs and native runs for comparison."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from harness import CHECK, MICRO, Ended, Started

from dryfly.mpi import libraries as mpi


class Start(Protocol):
    def __call__(
        self, *command: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Started: ...


class Dryfly(Protocol):
    def __call__(
        self,
        *command: str | Path,
        limit_s: float = 60.0,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ended: ...


class Native(Protocol):
    def __call__(
        self, ranks: int, *command: str | Path, limit_s: float = 120.0, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def start() -> Iterator[Start]:
    """start("run", "-n", "4", program): a run under way, ended with the test at the latest."""
    runs: list[Started] = []

    def start_one(
        *command: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Started:
        runs.append(Started([str(word) for word in command], environment=environment or {}, cwd=cwd))
        return runs[-1]

    yield start_one
    for run in runs:
        run.close()


@pytest.fixture
def dryfly(start: Start) -> Dryfly:
    """dryfly("run", "-n", "4", program): the ended run, after which nothing of it may be left."""

    def run(
        *command: str | Path,
        limit_s: float = 60.0,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Ended:
        started = start(*command, environment=environment, cwd=cwd)
        ended = started.wait(limit_s=limit_s)
        started.require_nothing_left()
        return ended

    return run


OWN_KERNELS = {"amx": "amx_bf16", "avx512-bf16": "avx512_bf16", "avx2": "avx2"}  # of dryfly-mxp; the processor's flag


def skip_without_processor_for(kernel: str) -> None:
    """Without the kernel's instructions there is nothing to test: that the solver refuses it has tests of its own."""
    if OWN_KERNELS[kernel] not in Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
        pytest.skip(f"this processor has no {OWN_KERNELS[kernel]}")


@pytest.fixture
def hogs() -> Iterator[None]:
    """Two processes for each processor that do nothing but run."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    yield
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def older_wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment with a cache folder of the tests' own, so that the user's list of MPIs stays as it is."""
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


class Programs:
    """Compiled once a session, by the wrappers of the MPI that dryfly manages."""

    def __init__(self, folder: Path, library: mpi.MpiLibrary) -> None:
        self._folder = folder
        self._library = library
        self._built: dict[Path, Path] = {}

    def __call__(self, source: Path) -> Path:
        if source not in self._built:
            wrapper = self._library.wrapper("mpicxx" if source.suffix == ".cpp" else "mpicc")
            assert wrapper is not None, f"{self._library.name} has no compiler wrapper"
            target = self._folder / source.parent.name / source.stem  # folders have programs of one name
            target.parent.mkdir(exist_ok=True)
            standard = "-std=c++20" if source.suffix == ".cpp" else "-std=gnu17"
            command = [str(wrapper), standard, "-O2", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow"]
            command += ["-Wno-unused-function", str(source), "-o", str(target), "-lm"]
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
            self._built[source] = target
        return self._built[source]

    def check(self, name: str) -> Path:
        return self(CHECK / name)

    def micro(self, name: str) -> Path:
        return self(MICRO / name)


@pytest.fixture(scope="session")
def library() -> mpi.MpiLibrary:
    return mpi.select(None)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, library: mpi.MpiLibrary) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"), library)


@pytest.fixture(scope="session")
def native(library: mpi.MpiLibrary) -> Native:
    """A native run by MPICH's own mpiexec. Its ranks poll: keep their number small."""

    def run(
        ranks: int, *command: str | Path, limit_s: float = 120.0, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        # As under dryfly, all ranks count as being on nodes of their own, so that MPI adds in the same order.
        environment = {**os.environ, "MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi"}
        environment["LD_LIBRARY_PATH"] = ":".join(library.library_folders)
        return subprocess.run(
            [str(Path(library.prefix) / "bin" / "mpiexec"), "-n", str(ranks), *map(str, command)],
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=True,
        )

    return run
