#!/usr/bin/env python3
"""Builds dryfly-hpl and dryfly-mxp under the address and undefined-behaviour sanitizers and solves small systems.

Grids, broadcasts, exchanges of rows, kernels, refinements and the writing of checkpoints are all taken at least once; a
restart is not. It ends with the first run that fails or that a sanitizer stops. Arguments: which of the
two; otherwise both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dryfly import mpi, solver

FLAGS = ("-std=c++20", "-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Leaks are not looked for: MPI keeps memory until its end.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "MPIR_CVAR_NOLOCAL": "1"}
KEPT = ("--checkpoint", "KEPT", "--checkpoint-every", "0")
HPL = ("-N", "61", "--nb", "8", "--depth", "1")
RUNS: dict[str, list[tuple[int, tuple[str, ...]]]] = {
    "dryfly-hpl": [
        (1, ("-N", "1,7,64", "--nb", "1,8,200")),
        (4, (*HPL, "--grid", "2x2", "--bcast", "1ring,1ringM,2ring", "--swap", "binary", "--pfact", "left,crout")),
        (4, (*HPL, "--grid", "4x1,1x4", "--bcast", "2ringM,long,longM", "--swap", "spread", "--u", "transposed")),
        (3, ("-N", "90", "--nb", "8", "--grid", "3x1", "--swap", "mix", "--l1", "transposed", "--screen", "yes")),
        (2, ("-N", "200", "--nb", "16", "--grid", "1x2", *KEPT)),
    ],
    "dryfly-mxp": [
        (1, ("-N", "7,64,101", "--nb", "1,8,33,200")),
        (4, ("-N", "101,160", "--nb", "16,32", "--grid", "2x2", "--refine", "gmres")),
        (3, ("-N", "101", "--nb", "16", "--grid", "3x1", "--kernel", "sgemm")),
        (3, ("-N", "101", "--nb", "16", "--grid", "1x3", "--precision", "fp16")),
        (2, ("-N", "101", "--nb", "16", "--grid", "1x2", "--precision", "fp32")),
        (2, ("-N", "200", "--nb", "16", "--grid", "1x2", *KEPT)),
    ],
}


def build(name: str, library: mpi.MpiLibrary, folder: Path) -> Path:
    command = [str(library.wrapper("mpicxx")), *FLAGS, f'-DDRYFLY_BLAS_FOUND="{":".join(solver.blas_libraries())}"']
    objects = {folder / f"{source.parent.name}-{source.stem}.o": source for source in solver.sources_of(name)}

    def one(target: Path) -> None:
        subprocess.run([*command, "-c", str(objects[target]), "-o", str(target)], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, objects))
    subprocess.run([*command, *map(str, objects), "-o", str(folder / name), "-ldl"], check=True)
    return folder / name


def main() -> None:
    library = mpi.select(None)
    launcher = str(library.wrapper("mpiexec"))
    for name in sys.argv[1:] or RUNS:
        runs = RUNS[name]
        with tempfile.TemporaryDirectory() as folder:
            program = build(name, library, Path(folder))
            for ranks, arguments in runs:
                words = [word.replace("KEPT", f"{folder}/kept") for word in arguments]
                print(name, ranks, *arguments, flush=True)
                ended = subprocess.run(
                    [launcher, "-n", str(ranks), str(program), "--progress", "none", *words],
                    env=ENVIRONMENT, capture_output=True, text=True, check=False,
                )  # fmt: skip
                if ended.returncode != 0 or "PASSED" not in ended.stdout:
                    sys.exit(f"{ended.stdout}{ended.stderr}ended with status {ended.returncode}")


main()
