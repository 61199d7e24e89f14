"""HPL-MxP's skeleton against dryfly-mxp itself: the same messages by size, and its time, on three grids."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from conftest import Dryfly

from dryfly.apps import solver
from dryfly.base import paths
from dryfly.mpi import libraries as mpi

MACHINE = ("--machine", "aurora", "--ppn", "1", "--compute", "model", "--skip-numerics", "--software", "none")
# SGEMM packs nothing into L and U that the skeleton does not know.
CASES = [
    (8, "2x4", ("-N", "4000", "--nb", "128"), ("n=4000", "nb=128", "p=2", "q=4")),
    (18, "2x9", ("-N", "3000", "--nb", "64", "--pmap", "column", "--precision", "fp32"),
     ("n=3000", "nb=64", "p=2", "q=9", "pmap=column", "element=4")),
    (32, "4x8", ("-N", "4096", "--nb", "96"), ("n=4096", "nb=96", "p=4", "q=8")),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def program(library: mpi.MpiLibrary) -> None:
    """Compiled before the first run is timed."""
    solver.build("dryfly-mxp", mpi=library)


def timed(folder: Path) -> Counter[int]:
    """How many messages of each size were sent in what HPL-MxP times: from its barrier until the ranks compare times
    for the second time, behind the refinement."""
    begun: dict[int, float] = {}
    compared: Counter[int] = Counter()
    ended: dict[int, float] = {}
    calls = parquet.read_table(folder / "calls.parquet").to_pylist()
    for call in sorted(calls, key=lambda each: (each["rank"], each["entered_s"])):
        rank = call["rank"]
        if call["call"] == "MPI_Barrier":
            begun.setdefault(rank, call["left_s"])
        elif call["call"] == "MPI_Allreduce" and call["bytes"] == 8 and rank in begun:
            compared[rank] += 1
            if compared[rank] == 2:
                ended[rank] = call["entered_s"]
    messages = parquet.read_table(folder / "messages.parquet").to_pylist()
    return Counter(
        each["bytes"] for each in messages if begun[each["source"]] <= each["called_s"] < ended[each["source"]]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "grid", "options", "words"), CASES, ids=lambda each: str(each)[:4])
def test_the_skeleton_sends_what_the_solver_sends_and_takes_its_time(
    dryfly: Dryfly, tmp_path: Path, ranks: int, grid: str, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    job = (*MACHINE, "-N", str(ranks))
    record, result, sent = tmp_path / "record", tmp_path / "mxp.json", tmp_path / "sent"
    ended = dryfly("run", *job, "--record", str(record), "--", "dryfly-mxp", *options, "--grid", grid, "--kernel",
                   "sgemm", "--progress", "none", "--json", str(result), limit_s=240.0)  # fmt: skip
    assert ended.exit_status == solver.NOT_SOLVED, ended.stderr
    spec = tmp_path / "spec"
    spec.write_text(dryfly("spec", *job).succeeded().stdout, encoding="utf-8")
    time_s = json.loads(result.read_text(encoding="utf-8"))["runs"][0]["time_s"]
    engine = Path(os.environ.get("DRYFLY_MOTIF") or paths.native("dryfly-motif"))
    answer = json.loads(
        subprocess.run(
            [engine, spec, "hplmxp", f"nodes={ranks}", "ppn=1", "level=links", f"messages={sent}", *words],
            check=True, capture_output=True, text=True, timeout=120,
        ).stdout
    )  # fmt: skip
    of_skeleton = Counter(int(line.split()[2]) for line in sent.read_text(encoding="utf-8").splitlines())
    assert of_skeleton == timed(record)
    assert answer["messages"] == of_skeleton.total()
    assert answer["virtual_ps"] * 1e-12 == pytest.approx(time_s, rel=0.05)
