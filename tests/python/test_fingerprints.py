"""A quick set of runs gives what was recorded. Whoever changes a result records it anew and says so in CHANGELOG."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dryfly.mpi import libraries as mpi

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tool" / "fingerprints.py"


def _tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True, check=False, timeout=300)


def test_results_are_those_recorded() -> None:
    names = {library.name for library in mpi.installed()}
    if not {"mpich-5.0.2", "openmpi-5.0.11"} <= names:
        pytest.skip("the recorded results are those of MPICH 5.0.2 and Open MPI 5.0.11")
    compared = _tool("compare", "--quick")
    assert compared.returncode == 0, compared.stdout


def test_a_result_that_differs_is_a_line_and_the_status(tmp_path: Path) -> None:
    recorded = (ROOT / "tests" / "fingerprints" / "recorded.toml").read_text(encoding="utf-8")
    changed = tmp_path / "recorded.toml"
    at = recorded.index('["latency of send, 8 B"]')
    line = next(line for line in recorded[at:].splitlines() if line.startswith("mean_ps"))
    changed.write_text(recorded[:at] + recorded[at:].replace(line, "mean_ps = 1", 1), encoding="utf-8")
    compared = _tool("compare", "--only", "latency of send, 8 B", "--to", changed)
    assert compared.returncode == 1
    assert "latency of send, 8 B: mean_ps was 1, is " in compared.stdout
