"""Graph500's search: the program is right on any grid of ranks, and the skeleton sends what it sends."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Native, Programs
from harness import ROOT
from recorded import by_class, sizes_between

from dryfly.base import paths

PROGRAM = ROOT / "programs" / "proxy" / "graph500.c"


@pytest.mark.parametrize("ranks", [2, 4])
def test_searches_are_valid_natively(native: Native, programs: Programs, ranks: int) -> None:
    ended = native(ranks, programs(PROGRAM), "scale=12", "roots=8", "seed=3")
    assert ended.returncode == 0, ended.stderr
    assert len(re.findall(r"^root \d+: 6\d{4} edges in [\d.]+ us, valid$", ended.stdout, re.MULTILINE)) == 8


@pytest.mark.parametrize(
    ("ranks", "word", "sentence"),
    [
        (3, "scale=7", "3 ranks: accepted is a power of two\n"),
        (4, "scale=7", "scale=7 on 4 ranks: accepted is 8 to 26\n"),
        (2, "--help", "--help: accepted are scale=, edgefactor=, roots= and seed=, each with a number\n"),
    ],
)
def test_what_it_cannot_do_is_said(native: Native, programs: Programs, ranks: int, word: str, sentence: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(ranks, programs(PROGRAM), word)
    assert refused.value.returncode == 2
    assert sentence in refused.value.stderr


@pytest.mark.parametrize(("ranks", "scale"), [(8, 14), pytest.param(16, 15, marks=pytest.mark.slow)])
def test_the_skeleton_sends_what_the_program_sends(
    dryfly: Dryfly, programs: Programs, tmp_path: Path, ranks: int, scale: int
) -> None:
    """Within 10 % in each class of sizes, for as many searches as the specification asks: both draw their roots."""
    job = ("--machine", "aurora", "-N", str(ranks), "--ppn", "1", "--compute", "none", "--software", "none")
    problem = (f"scale={scale}", "roots=64")
    record = tmp_path / "record"
    run = dryfly("run", *job, "--record", str(record), "--", programs(PROGRAM), *problem, limit_s=480.0).succeeded()
    times = [float(took) for took in re.findall(r"in ([\d.]+) us, valid", run.stdout)]
    assert len(times) == 64
    spec = tmp_path / "spec"
    spec.write_text(dryfly("spec", *job).succeeded().stdout, encoding="utf-8")
    listing = tmp_path / "messages"
    engine = Path(os.environ.get("DRYFLY_MOTIF") or paths.native("dryfly-motif"))
    command: list[str | Path] = [engine, spec, "graph500", f"nodes={ranks}", "ppn=1", *problem, f"messages={listing}"]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)
    sent = [int(line.split()[2]) for line in listing.read_text(encoding="utf-8").splitlines()]
    for of_skeleton, of_program in zip(by_class(sent), by_class(sizes_between(record, "MPI_Barrier")), strict=True):
        assert of_skeleton == pytest.approx(of_program, rel=0.1)
    assert answer["virtual_ps"] * 1e-6 == pytest.approx(sum(times) / len(times), rel=0.2)
