"""The one-sided exchange of a fast multipole method: the program is right, and the skeleton does what it does."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Native, Programs
from harness import ROOT
from recorded import by_class, sizes_between

from dryfly.base import paths
from dryfly.mpi.libraries import MpiLibrary

PROGRAM = ROOT / "programs" / "proxy" / "fmm.c"
WHERE = ("--machine", "aurora", "--compute", "none", "--software", "none", "--quiet")


@pytest.mark.parametrize(
    ("ranks", "given"),
    [
        (2, ("--what", "get", "--boxes", "4")),
        (4, ("--what", "put", "--boxes", "9", "--groups", "2", "--list", "turns")),
        (3, ("--what", "put", "--boxes", "7", "--ops", "10")),
    ],
)
def test_what_arrives_is_right_natively(
    native: Native, programs: Programs, tmp_path: Path, ranks: int, given: tuple[str, ...]
) -> None:
    file = tmp_path / "fmm.json"
    assert native(ranks, programs(PROGRAM), *given, "--json", str(file)).returncode == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["wrong"] == 0
    assert found["operations"] > 0


@pytest.mark.parametrize(
    ("ranks", "nodes", "what", "order"),
    [
        (8, 8, "get", "ranks"),
        (8, 8, "put", "turns"),
        pytest.param(16, 16, "put", "ranks", marks=pytest.mark.slow),
        pytest.param(32, 32, "get", "turns", marks=pytest.mark.slow),
    ],
)
def test_the_skeleton_does_what_the_program_does(
    dryfly: Dryfly, programs: Programs, tmp_path: Path, ranks: int, nodes: int, what: str, order: str
) -> None:
    job = ("--machine", "aurora", "-N", str(nodes), "--ppn", str(ranks // nodes), "--compute", "none")
    problem = {"what": what, "boxes": "8", "ops": "500", "list": order}
    record, file = tmp_path / "record", tmp_path / "fmm.json"
    given = [word for name, value in problem.items() for word in (f"--{name}", value)]
    command = ("run", *job, "--software", "none", "--record", str(record), "--", programs(PROGRAM), *given)
    dryfly(*command, "--json", str(file), limit_s=240.0).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["wrong"] == 0
    spec = tmp_path / "spec"
    spec.write_text(dryfly("spec", *job, "--software", "none").succeeded().stdout, encoding="utf-8")
    listing = tmp_path / "messages"
    engine = Path(os.environ.get("DRYFLY_MOTIF") or paths.native("dryfly-motif"))
    words = [f"{name}={value}" for name, value in problem.items()]
    asked: list[str | Path] = [engine, spec, "fmm", f"nodes={nodes}", f"ppn={ranks // nodes}", *words, "bytes=1056"]
    ran = subprocess.run([*asked, f"messages={listing}"], check=True, capture_output=True, text=True, timeout=120)
    answer = json.loads(ran.stdout)
    assert answer["figures"]["operations"] == found["operations"]
    assert answer["figures"]["fences"] == found["fences"]
    sent = [int(line.split()[2]) for line in listing.read_text(encoding="utf-8").splitlines()]
    for of_skeleton, of_program in zip(by_class(sent), by_class(sizes_between(record, "MPI_Win_fence")), strict=True):
        assert of_skeleton == pytest.approx(of_program, rel=0.1)
    assert answer["virtual_ps"] * 1e-12 == pytest.approx(found["time_s"], rel=0.1)


def test_groups_run_beside_each_other_with_open_mpi(dryfly: Dryfly, tmp_path: Path) -> None:
    file = tmp_path / "fmm.json"
    given = ("--groups", "2", "--boxes", "6", "--json", str(file))
    dryfly("run", *WHERE, "-n", "4", "--mpi", "openmpi", "--", str(PROGRAM), *given, limit_s=120).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["wrong"] == 0
    assert found["groups"] == 2


def test_puts_without_a_fence_between_them_all_arrive_as_active_messages_too(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    """MPICH without RMA of its own: with buffers in the host's memory nothing runs out."""
    file = tmp_path / "fmm.json"
    given = ("--what", "put", "--boxes", "12", "--ops", "100000", "--json", str(file))
    without = {"MPIR_CVAR_CH4_OFI_ENABLE_RMA": "0"}
    command = ("run", *WHERE, "-N", "8", "--ppn", "1", "--", programs(PROGRAM), *given)
    dryfly(*command, limit_s=120, environment=without).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (found["fences"], found["wrong"]) == (1, 0)
    assert found["operations"] > 2000


def test_expansions_in_gpus_memory_arrive_and_take_longer(dryfly: Dryfly, tmp_path: Path) -> None:
    """Open MPI, with HMEM: 1,152 operations of two ranks."""
    took = {}
    for memory in ("host", "cuda"):
        file = tmp_path / f"{memory}.json"
        given = ("--what", "get", "--boxes", "8", "--ops", "500", "--memory", memory, "--json", str(file))
        job = ("--machine", "perlmutter-gpu", "-N", "2", "--ppn", "1", "--compute", "none", "--quiet")
        dryfly("run", *job, "--mpi", "openmpi", "--", str(PROGRAM), *given, limit_s=120).succeeded()
        found = json.loads(file.read_text(encoding="utf-8"))
        assert (found["memory"], found["wrong"], found["right"]) == (memory, 0, 1)
        took[memory] = found["time_s"]
    assert took["cuda"] > took["host"]


def test_numbers_that_do_not_arrive_are_noticed(dryfly: Dryfly, library: MpiLibrary, tmp_path: Path) -> None:
    """The same program, its gets leaving the last number of each box out."""
    source, target = tmp_path / "less.c", tmp_path / "less"
    less = "#define MPI_Get(b, n, t, to, at, m, u, w) (MPI_Get)(b, (n)-1, t, to, at, (m)-1, u, w)"
    source.write_text(f'#include <mpi.h>\n{less}\n#include "{PROGRAM}"\n')
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    subprocess.run([str(wrapper), f"-I{PROGRAM.parent}", str(source), "-o", str(target)], check=True)
    run = dryfly("run", *WHERE, "-n", "2", "--", target, "--boxes", "4")
    assert run.exit_status == 1
    assert "fmm: data that arrived was wrong" in run.stderr


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("--what=accumulate", "--what: accepted is get or put\n"),
        ("--boxes=3", "--boxes: accepted is twice the ranks along the longest side of a group's grid to 1024\n"),
        ("--groups=3", "--groups: accepted is a number that divides the ranks\n"),
        ("--memory=disk", "--memory: accepted is host, cuda, rocm or sycl\n"),
        ("--ops=0", "--ops: accepted is a whole number from 1 to 2^30\n"),
        ("--fences", "--fences: no such option; --help lists them\n"),
        ("fences", "fences: no such argument; --help lists the options\n"),
    ],
)
def test_what_it_cannot_do_is_said(native: Native, programs: Programs, word: str, sentence: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(2, programs(PROGRAM), word)
    assert refused.value.returncode == 2
    assert sentence in refused.value.stderr
