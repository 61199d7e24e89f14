"""What the benches share: a run of dryfly with its result, medians over rounds, and the last line of a bench."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
MICRO = REPOSITORY / "programs" / "micro"


@dataclass(frozen=True, kw_only=True)
class Measured:
    result: dict[str, Any]
    wall_s: float  # of the whole command, from its start to its end
    pss_bytes: int  # most memory of all its processes together; 0: not asked for
    output: str

    @property
    def inside_s(self) -> float:
        """Wall time between the last rank's MPI_Init and the last rank's MPI_Finalize."""
        return float(self.result["simulator"]["wall_ns"]) / 1e9


def mpi_prefix(family: str) -> Path:
    """Of the MPI library that a run without --mpi uses, or of the last one of another family."""
    listed = subprocess.run(["dryfly", "mpi", "list"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines() if line.startswith("*") or family != "mpich"]
    return Path(next(row[-1] for row in reversed(rows) if row[-2] == family))


@contextmanager
def compiled(name: str, *, family: str = "mpich", folder: Path = MICRO) -> Iterator[str]:
    """A program of one source file as an executable, so that no round measures the compiler."""
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / name
        compiler = mpi_prefix(family) / "bin" / "mpicc"
        subprocess.run([str(compiler), "-O2", str(folder / f"{name}.c"), "-o", str(program)], check=True)
        yield str(program)


def run_dryfly(*options: str, memory: bool = False) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "result.json"
        command = ["dryfly", "run", "--compute", "none", "--json", str(target), *options]
        started = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        watch = _MemoryWatch(process.pid) if memory else None
        output, _ = process.communicate()
        wall_s = time.monotonic() - started
        pss_bytes = watch.most() if watch else 0
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{output}ended with status {process.returncode}")
        return Measured(result=json.loads(target.read_text()), wall_s=wall_s, pss_bytes=pss_bytes, output=output)


class _MemoryWatch:
    """Sums the proportional set sizes of a process and all below it, once a second."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def most(self) -> int:
        self._over.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._over.wait(1.0):
            self._most = max(self._most, sum(_pss_bytes(process) for process in _with_descendants(self._root)))


def _with_descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            after_name = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _pss_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def rounds_asked(otherwise: int) -> int:
    """The one argument of a bench: how many rounds."""
    return max(1, int(sys.argv[1])) if len(sys.argv) > 1 else otherwise


def median_of(rounds: int, name: str, unit: str, measure: Callable[[], float]) -> float:
    values = []
    for number in range(rounds):
        values.append(measure())
        print(f"{name}: round {number + 1}: {values[-1]:,.6g} {unit} (load {os.getloadavg()[0]:.1f})", flush=True)
    return statistics.median(values)


def anchor_of_this_box(name: str) -> float:
    """What this box does without dryfly (bench/anchors.cpp): dependent-loads or hand-over-one-processor, a second."""
    program = REPOSITORY / "build" / "bench" / "anchors"
    kind = "loads" if name == "dependent-loads" else "hand-over"
    printed = subprocess.run([str(program), kind], check=True, capture_output=True, text=True).stdout
    return next(float(line.split()[1]) for line in printed.splitlines() if line.startswith(name))


def figure(value: float, unit: str, anchor: str, anchor_value: float, *, less_is_better: bool = False) -> None:
    """The last line of a bench. More is better in a ratio, whatever it is in the figure."""
    ratio = anchor_value / value if less_is_better else value / anchor_value
    print(f"figure {value:.6g} {unit}; anchor {anchor} {anchor_value:.6g}; ratio {ratio:.4g}")
