"""The memory of the solvers, as the system counts it, against what the matrix and the panels need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import skip_without_processor_for

from dryfly.apps import solver
from dryfly.mpi import libraries as mpi

BLOCK = 64


# By a small process, because a new process counts what its parent had.
WATCH = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def most_bytes(program: Path, *arguments: str) -> int:
    """Of all memory that the process ever had at one time."""
    command = [sys.executable, "-S", "-c", WATCH, str(program), "--progress", "none", *arguments]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1024


@pytest.mark.parametrize(
    ("name", "kernel", "order", "element_bytes", "panel_bytes", "over"),
    [
        # Two panels, this step's and the next one's, in FP64; 5 % is allowed.
        ("dryfly-hpl", None, 4000, 8, 2 * 8, 0.05),
        # L of two steps and U in BF16, the inverses of the diagonal blocks in FP32; 10 % is allowed. Dryfly's own
        # kernels: those of libraries keep copies of a panel in FP32.
        ("dryfly-mxp", "amx", 6000, 2, 3 * 2 + 4, 0.10),
        ("dryfly-mxp", "avx512-bf16", 6000, 2, 3 * 2 + 4, 0.10),
        ("dryfly-mxp", "avx2", 6000, 2, 3 * 2 + 4, 0.10),
    ],
)
def test_the_matrix_is_nearly_all_that_is_stored(
    library: mpi.MpiLibrary,
    name: str,
    kernel: str | None,
    order: int,
    element_bytes: int,
    panel_bytes: int,
    over: float,
) -> None:
    options = ("--nb", str(BLOCK))
    if kernel is not None:
        skip_without_processor_for(kernel)
        options = (*options, "--kernel", kernel)
    program = solver.build(name, mpi=library)
    matrix_bytes = element_bytes * order**2
    empty = most_bytes(program, "-N", "64", *options)
    full = most_bytes(program, "-N", str(order), *options)
    needed = full - empty
    assert needed > matrix_bytes, "or this test does not see the matrix"
    assert needed <= matrix_bytes * (1 + over) + panel_bytes * order * BLOCK, f"{needed / 1e6:.1f} MB"
