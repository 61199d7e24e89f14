"""Runs of real MPICH programs on the simulated network: needs the installed package and `dryfly mpi add`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from launched import Run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def begin(*arguments: str) -> Run:
        folder = tmp_path / f"run{len(runs)}"
        folder.mkdir()
        runs.append(Run(folder, list(arguments)))
        return runs[-1]

    yield begin
    for run in runs:
        for pid in run.processes():
            os.kill(pid, signal.SIGKILL)
        run.process.communicate()
