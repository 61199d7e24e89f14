"""Kernels that dryfly's nvcc and hipcc compiled, on machines with simulated GPUs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import CHECK, Dryfly

from dryfly.mpi import libraries as mpi

_COMMANDS = {
    "perlmutter-gpu": ("nvcc", "-arch=sm_80", "-lcuda"),
    "frontier": ("hipcc", "-x", "hip", "--offload-arch=gfx90a"),
}
# Of data/: a kernel's launch, the rates of memory and of FP64.
_KERNEL_US, _MEMORY, _FP64 = (
    5,
    {"perlmutter-gpu": 1555, "frontier": 1638.4},
    {"perlmutter-gpu": 19.5, "frontier": 47.85},
)


@pytest.mark.parametrize("machine", _COMMANDS)
def test_kernels_compute_in_their_streams_and_their_results_are_sent(
    machine: str, dryfly: Dryfly, tmp_path: Path
) -> None:
    wrapper = mpi.select("openmpi").wrapper("mpicxx")
    program = tmp_path / "gpu_kernel"
    command, *options = _COMMANDS[machine]
    words = [sys.executable, "-m", "dryfly", command, *options, "-ccbin", str(wrapper), "-Xcompiler", "-Wall,-Wextra"]
    built = subprocess.run(
        [*words, str(CHECK / "gpu_kernel.cu"), "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    numbers = map(str, (_KERNEL_US, _MEMORY[machine], _FP64[machine]))
    options = ["run", "--machine", machine, "-N", "2", "--compute", "none", "--"]
    run = dryfly(*options, program, *numbers, limit_s=120).succeeded()
    assert "ok gpu_kernel\n" in run.stdout
    # Each rank says it once, whatever it launches.
    said = "dryfly: a kernel was launched that is not compiled for this computer"
    assert run.stderr.count(said) == 2
