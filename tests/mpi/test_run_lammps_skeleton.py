"""The skeleton of LAMMPS against LAMMPS itself: messages and bytes of its steps by size."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from conftest import Dryfly

from dryfly.base import paths

_BENCH = Path(sysconfig.get_paths()["purelib"]) / "lammps" / "share" / "lammps" / "bench"
RANKS, STEPS = 8, 20
JOB = ("--machine", "aurora", "-N", str(RANKS), "--ppn", "1", "--compute", "none", "--software", "none")
WORDS = (
    "x=2", "y=2", "z=2", "atoms=4000", "density=103896", "box=5500x7700x7273", "cutoff=1000",
    "skin=200", "spacing=243", "mesh=25x32x32", "order=5", "differentiate=ik", "rebuild=9",
    "atom_work_ps=0",
)  # fmt: skip


def by_class(sizes: Counter[int]) -> tuple[Counter[int], Counter[int]]:
    """Messages and bytes by the power of two that a size has reached."""
    messages: Counter[int] = Counter()
    volume: Counter[int] = Counter()
    for size, count in sizes.items():
        messages[size.bit_length()] += count
        volume[size.bit_length()] += size * count
    return messages, volume


def sent_by_lammps(dryfly: Dryfly, folder: Path, steps: int) -> Counter[int]:
    folder.mkdir()
    (folder / "data.rhodo").symlink_to(_BENCH / "data.rhodo")
    lines = (_BENCH / "in.rhodo").read_text(encoding="utf-8").splitlines()
    text = "\n".join(f"run {steps}" if line.startswith("run") else line for line in lines)
    (folder / "in.rhodo").write_text(text + "\n", encoding="utf-8")
    command = ("lmp", "-in", "in.rhodo", "-log", "none", "-screen", "none")
    dryfly("run", *JOB, "--record", str(folder / "record"), "--", *command, cwd=folder, limit_s=300.0).succeeded()
    return Counter(parquet.read_table(folder / "record" / "messages.parquet")["bytes"].to_pylist())


@pytest.mark.slow
def test_the_skeleton_sends_what_lammps_sends(dryfly: Dryfly, tmp_path: Path) -> None:
    real = sent_by_lammps(dryfly, tmp_path / "run", STEPS)
    real.subtract(sent_by_lammps(dryfly, tmp_path / "start", 0))
    spec, listing = tmp_path / "spec", tmp_path / "messages"
    spec.write_text(dryfly("spec", *JOB).succeeded().stdout, encoding="utf-8")
    engine = Path(os.environ.get("DRYFLY_MOTIF") or paths.native("dryfly-motif"))
    words = [f"nodes={RANKS}", "ppn=1", f"steps={STEPS}", f"messages={listing}", *WORDS]
    subprocess.run([engine, spec, "lammps", *words], check=True, capture_output=True, timeout=120)
    lines = listing.read_text(encoding="utf-8").splitlines()
    for ours, theirs in zip(by_class(Counter(int(line.split()[2]) for line in lines)), by_class(real), strict=True):
        assert ours.total() == pytest.approx(theirs.total(), rel=0.02)
        for size, amount in theirs.items():
            if amount >= 0.02 * theirs.total():
                assert ours[size] == pytest.approx(amount, rel=0.1), f"sizes from {(1 << size) >> 1}"
