"""What ranks and whoever starts them really say to one another during MPI_Init and MPI_Finalize, beside the closed form
of a job's start (docs/model/startup.md)."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import MICRO

from dryfly.mpi import libraries as mpi
from dryfly.oracle import startup
from dryfly.oracle.startup import Costs, Job

_RELAY = Path(__file__).parent / "relay.py"
_FREE = Costs(latency=0, rate=1, serve=0, local=0, spawn=0, at_once=1, fork=0, init=0, arp=0, fabric_message=0,
              fabric_rate=1)  # fmt: skip


@dataclass(frozen=True)
class Said:
    """By all ranks together, and to them."""

    messages: int
    bytes: int
    key_space: int


def said(dryfly: Dryfly, folder: Path, *command: str | Path, family: str) -> Said:
    program = Programs(folder, mpi.select(family))(MICRO / "init_finalize.c")
    counts = folder / "counts"
    counts.mkdir()
    run = dryfly(
        "run", "--compute", "none", "--mpi", family, *command, "--", sys.executable, "-S", _RELAY, counts, program
    )
    run.succeeded()
    ranks = [tuple(map(int, file.read_text().split())) for file in counts.iterdir()]
    return Said(
        messages=sum(each[0] + each[2] for each in ranks),
        bytes=sum(each[1] + each[3] for each in ranks),
        key_space=max(each[4] for each in ranks),
    )


def of_ranks(job: Job) -> tuple[int, int]:
    """Messages and bytes between ranks and their servers, in the model."""
    parts = startup.parts(job, _FREE).values()
    return sum(each.local_messages for each in parts), sum(each.local_bytes for each in parts)


@pytest.mark.parametrize(("nodes", "ppn"), [(4, 4), (8, 8)])
def test_messages_and_bytes_of_pmi_1_are_the_models(nodes: int, ppn: int, dryfly: Dryfly, tmp_path: Path) -> None:
    found = said(dryfly, tmp_path, "-N", str(nodes), "--ppn", str(ppn), "--on-node", "shared", family="mpich")
    job = Job(nodes=nodes, ppn=ppn, launcher="dryfly", pmi="pmi1", key_space=found.key_space)
    assert of_ranks(job) == (found.messages, found.bytes)


@pytest.mark.parametrize("launcher", ["dryfly", "hydra"])
def test_where_nobody_shares_a_node_all_tell_their_addresses(launcher: str, dryfly: Dryfly, tmp_path: Path) -> None:
    words = ("-N", "4", "--ppn", "4", "--on-node", "provider", "--launcher", launcher)
    found = said(dryfly, tmp_path, *words, family="mpich")
    job = Job(nodes=4, ppn=4, launcher=launcher, pmi="pmi1", roots=False, key_space=found.key_space)
    assert of_ranks(job) == (found.messages, found.bytes)


def test_hydra_says_the_same_in_other_words(dryfly: Dryfly, tmp_path: Path) -> None:
    words = ("-N", "4", "--ppn", "4", "--on-node", "shared", "--launcher", "hydra")
    found = said(dryfly, tmp_path, *words, family="mpich")
    job = Job(nodes=4, ppn=4, launcher="hydra", pmi="pmi1", key_space=found.key_space)
    assert of_ranks(job) == (found.messages, found.bytes)


@pytest.mark.parametrize("launcher", ["dryfly", "prterun"])
def test_pmix_says_as_much_and_as_long(launcher: str, dryfly: Dryfly, tmp_path: Path) -> None:
    """Bytes within 1 %, for names of files are in them. dryfly-launch hears of each rank once beside PMIx, which the
    relay does not see."""
    words = ("-N", "4", "--ppn", "4", "--launcher", launcher)
    found = said(dryfly, tmp_path, *words, family="openmpi")
    job = Job(nodes=4, ppn=4, launcher=launcher, pmi="pmix")
    messages, size = of_ranks(job)
    beside = job.ranks if launcher == "dryfly" else 0
    assert messages == found.messages + beside
    assert size == pytest.approx(found.bytes, rel=0.01)
