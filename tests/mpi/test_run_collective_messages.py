"""What collectives of skeletons send is what the real MPI libraries send: tool/collective_messages.py, at a few sizes.

The tool compares each message's source, target and size; a sweep over more ranks and sizes is the tool itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT

_TOOL = ROOT / "tool" / "collective_messages.py"
# make test builds it before.
_MOTIF = ROOT / "build" / "core" / "motif" / "dryfly-motif"


def _compare(*arguments: str, motif: Path = _MOTIF) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, _TOOL, "--motif", motif, *arguments]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
@pytest.mark.parametrize("ranks", [2, 3, 8, *(pytest.param(many, marks=pytest.mark.slow) for many in (16, 60))])
def test_each_call_sends_what_the_library_sends(library: str, ranks: int) -> None:
    # 16 KiB and 64 KiB lie on either side of most thresholds of both libraries.
    compared = _compare("--mpi", library, "--ranks", str(ranks), "--bytes", "8,2048,16384,65536")
    assert compared.returncode == 0, f"{compared.stdout}\n{compared.stderr}"
    assert re.search(r"^figure 41 calls alike; of 41$", compared.stdout, re.MULTILINE), compared.stdout


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_elements_that_the_ranks_do_not_divide(library: str) -> None:
    compared = _compare("--mpi", library, "--ranks", "7", "--bytes", "12,1540,38420")  # of ints: 3, 385, 9605
    assert compared.returncode == 0, f"{compared.stdout}\n{compared.stderr}"
    assert re.search(r"^figure 31 calls alike; of 31$", compared.stdout, re.MULTILINE), compared.stdout


def test_a_difference_is_found_and_named(tmp_path: Path) -> None:
    # A skeleton that chooses as the other library does.
    other = tmp_path / "motif"
    other.write_text(f'#!/bin/sh\nexec "{_MOTIF}" $(echo "$@" | sed s/library=mpich/library=openmpi/)\n')
    other.chmod(0o755)
    compared = _compare("--mpi", "mpich", "--ranks", "5", "--bytes", "64", "--only", "bcast", motif=other)
    assert compared.returncode == 1
    assert "mpich, 5 ranks, bcast:64: the library sends 4 messages" in compared.stdout, compared.stdout
