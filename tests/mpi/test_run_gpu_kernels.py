"""Kernels that dryfly's nvcc and hipcc compiled, on machines with simulated GPUs."""

from __future__ import annotations

import re
import statistics
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
    {"perlmutter-gpu": 16.57, "frontier": 23.87},
)


def _compiled(source: str, *, machine: str, folder: Path) -> Path:
    """By dryfly's nvcc or hipcc, whichever the machine has."""
    wrapper = mpi.select("openmpi").wrapper("mpicxx")
    program = folder / Path(source).stem
    command, *options = _COMMANDS[machine]
    words = [sys.executable, "-m", "dryfly", command, *options, "-ccbin", str(wrapper), "-Xcompiler", "-Wall,-Wextra"]
    built = subprocess.run(
        [*words, str(CHECK / source), "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stderr) == (0, "")
    return program


@pytest.mark.parametrize("machine", _COMMANDS)
def test_kernels_compute_in_their_streams_and_their_results_are_sent(
    machine: str, dryfly: Dryfly, tmp_path: Path
) -> None:
    program = _compiled("gpu_kernel.cu", machine=machine, folder=tmp_path)
    numbers = map(str, (_KERNEL_US, _MEMORY[machine], _FP64[machine]))
    options = ["run", "--machine", machine, "-N", "2", "--compute", "none", "--"]
    run = dryfly(*options, program, *numbers, limit_s=120).succeeded()
    assert "ok gpu_kernel\n" in run.stdout
    # Each rank says it once, whatever it launches.
    said = "dryfly: a kernel was launched that is not compiled for this computer"
    assert run.stderr.count(said) == 2


def _times(text: str) -> dict[str, float]:
    """Microseconds by what was measured and its bytes."""
    return {what: float(us) for what, us in re.findall(r"^([^#\n]*, \d+) ([\d.]+)$", text, re.MULTILINE)}


def test_kernels_words_and_memory_take_about_what_they_do_on_a_real_gpu(dryfly: Dryfly, tmp_path: Path) -> None:
    program = _compiled("gpu_stream_times.cu", machine="perlmutter-gpu", folder=tmp_path)
    options = ("run", "--machine", "perlmutter-gpu", "-n", "1", "--compute", "none", "--")
    simulated = _times(dryfly(*options, program, "1", limit_s=120).succeeded().stdout)
    real = _times((CHECK / "gpu_stream_times_h100.txt").read_text())
    assert simulated.keys() == real.keys()
    ratios = [simulated[each] / real[each] for each in real]
    assert statistics.median(abs(ratio - 1) for ratio in ratios) < 0.17
    assert sum(0.5 <= ratio <= 2 for ratio in ratios) > 0.83 * len(ratios)
