#!/usr/bin/env python3
"""Builds dryfly-hpl and dryfly-mxp under the address and undefined-behaviour sanitizers and solves small systems.

Grids, broadcasts, exchanges of rows, kernels and refinements are all taken at least once, and so are an interruption
and a restart from a checkpoint. It ends with the first run that fails or that a sanitizer stops. Arguments: which of
the two; otherwise both.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dryfly.apps import solver
from dryfly.mpi import libraries as mpi

INCLUDE = Path(__file__).resolve().parent.parent / "include"
FLAGS = ("-std=c++20", "-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Leaks are not looked for: MPI keeps memory until its end.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "MPIR_CVAR_NOLOCAL": "1"}
INTERRUPTED = ("-N", "600", "--nb", "16", "--grid", "1x2", "--checkpoint-every", "0", "--checkpoint")  # and a folder
HPL = ("-N", "61", "--nb", "8", "--depth", "1")
RUNS: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "dryfly-hpl": [
        (1, ("-N", "1,7,64", "--nb", "1,8,200")),
        (4, (*HPL, "--grid", "2x2", "--bcast", "1ring,1ringM,2ring", "--swap", "binary", "--pfact", "left,crout")),
        (4, (*HPL, "--grid", "4x1,1x4", "--bcast", "2ringM,long,longM", "--swap", "spread", "--u", "transposed")),
        (3, ("-N", "90", "--nb", "8", "--grid", "3x1", "--swap", "mix", "--l1", "transposed", "--screen", "yes")),
        (2, ("-N", "50", "--threshold", "16", "--warm-up", "yes", "--pivot", "hybrid")),
    ],
    "dryfly-mxp": [
        (1, ("-N", "7,64,101", "--nb", "1,8,33,200")),
        (4, ("-N", "101,160", "--nb", "16,32", "--grid", "2x2", "--refine", "gmres")),
        (3, ("-N", "101", "--nb", "16", "--grid", "3x1", "--kernel", "sgemm")),
        (3, ("-N", "101", "--nb", "16", "--grid", "1x3", "--precision", "fp16")),
        (2, ("-N", "101", "--nb", "16", "--grid", "1x2", "--precision", "fp32", "--warm-up", "yes")),
    ],
}


def build(name: str, library: mpi.MpiLibrary, folder: Path) -> Path:
    command = [str(library.wrapper("mpicxx")), *FLAGS, f"-I{INCLUDE}"]
    command += [f'-DDRYFLY_BLAS_FOUND="{":".join(solver.blas_libraries())}"']
    objects = {folder / f"{source.parent.name}-{source.stem}.o": source for source in solver.sources_of(name)}

    def one(target: Path) -> None:
        subprocess.run([*command, "-c", str(objects[target]), "-o", str(target)], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, objects))
    subprocess.run([*command, *map(str, objects), "-o", str(folder / name), "-ldl"], check=True)
    return folder / name


def solve(program: Path, launcher: str, ranks: int, *arguments: str) -> None:
    print(program.name, ranks, *arguments, flush=True)
    command = [launcher, "-n", str(ranks), str(program), "--progress", "none", *arguments]
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if ended.returncode != 0 or "PASSED" not in ended.stdout:
        sys.exit(f"{ended.stdout}{ended.stderr}ended with status {ended.returncode}")


def interrupt(program: Path, launcher: str, kept: Path) -> None:
    """Kills a run that has kept a state."""
    command = [launcher, "-n", "2", str(program), *INTERRUPTED, str(kept)]
    run = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    while not list(kept.glob("*-current")):
        if run.poll() is not None:
            sys.exit(f"{' '.join(command)} has ended with status {run.returncode} before it was killed")
        time.sleep(0.001)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()


def main() -> None:
    library = mpi.select(None)
    launcher = str(library.wrapper("mpiexec"))
    for name in sys.argv[1:] or RUNS:
        runs = RUNS[name]
        with tempfile.TemporaryDirectory() as folder:
            program = build(name, library, Path(folder))
            for ranks, arguments in runs:
                solve(program, launcher, ranks, *arguments)
            kept = Path(folder) / "kept"
            interrupt(program, launcher, kept)
            solve(program, launcher, 2, *INTERRUPTED, str(kept), "--restart", "yes")


main()
