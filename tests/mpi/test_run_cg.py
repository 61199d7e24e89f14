"""HPCG's and Nekbone's iterations: the programs are right on any grid of ranks, the skeletons send what they send."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import Dryfly, Native, Programs
from harness import ROOT
from recorded import sizes_within

from dryfly.base import paths
from dryfly.mpi.libraries import MpiLibrary

HPCG, NEKBONE = (ROOT / "programs" / "proxy" / f"{name}.c" for name in ("hpcg", "nekbone"))
ITERATIONS = 3
# Of what the machine computes nothing takes time.
AT_ONCE = ("--set", "compute.gpu.memory_rate=1 PB/s", "--set", "compute.gpu.latency=0 ns")


def _residual(output: str) -> float:
    found = re.search(r"^residual after \d+ iterations: (\S+)$", output, re.MULTILINE)
    assert found is not None, output
    return float(found[1])


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (HPCG, ("local=8x16x16", "levels=4", "iterations=3")),
        (HPCG, ("local=3x2x4", "grid=1x2x1", "levels=1", "iterations=1")),
        (NEKBONE, ("local=2x2x3", "nx1=7", "iterations=10")),
        (NEKBONE, ("local=2x2x1", "grid=1x1x2", "nx1=2", "iterations=9")),
    ],
)
def test_solutions_are_right_natively(
    native: Native, programs: Programs, program: Path, given: tuple[str, ...]
) -> None:
    ended = native(2, programs(program), *given)
    assert re.search(r"^solved in \d+ iterations, at most \S+ off, valid$", ended.stdout, re.MULTILINE), ended.stdout


@pytest.mark.parametrize(
    ("program", "given", "ways"),
    [
        (HPCG, ("levels=0", "iterations=6"), {2: ("grid=2x1x1", "local=4x8x4"), 4: ("grid=1x4x1", "local=8x2x4")}),
        (NEKBONE, ("nx1=5", "iterations=12"), {2: ("grid=2x1x1", "local=2x4x2"), 4: ("grid=1x2x2", "local=4x2x1")}),
    ],
)
def test_the_ranks_make_no_difference_without_a_preconditioner(
    native: Native, programs: Programs, program: Path, given: tuple[str, ...], ways: dict[int, tuple[str, ...]]
) -> None:
    """One problem, cut in two ways: sums in another order alone part their residuals after a dozen iterations."""
    first, second = (_residual(native(ranks, programs(program), *given, *way).stdout) for ranks, way in ways.items())
    assert 1e-9 < first < 0.1
    assert first == pytest.approx(second, rel=1e-9)


@pytest.mark.parametrize(
    ("program", "call", "sentence"),
    [
        (HPCG, "MPI_Send", "hpcg: the matrix is not symmetric: "),
        (NEKBONE, "MPI_Isend", "nekbone: shared points are not summed right, by: "),
    ],
)
def test_numbers_that_do_not_arrive_are_noticed(
    native: Native, library: MpiLibrary, tmp_path: Path, program: Path, call: str, sentence: str
) -> None:
    """The same programs, which leave the last number of each message out."""
    source, target = tmp_path / "less.c", tmp_path / "less"
    less = f"#define {call}(buffer, count, ...) ({call})(buffer, (count)-1, __VA_ARGS__)"
    source.write_text(f'#include <mpi.h>\n{less}\n#include "{program}"\n')
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    subprocess.run([str(wrapper), str(source), "-o", str(target), "-lm"], check=True)
    with pytest.raises(subprocess.CalledProcessError) as wrong:
        native(2, target, "iterations=3")
    assert wrong.value.returncode == 1
    assert sentence in wrong.value.stderr


@pytest.mark.parametrize(
    ("program", "ranks", "word", "sentence"),
    [
        (HPCG, 2, "local=12x8x8", "local=12x8x8: accepted are multiples of 8, which levels=4 asks for\n"),
        (HPCG, 2, "local=8x8", "local=8x8: accepted is PxQxR, each from 1 to 4096\n"),
        (HPCG, 2, "local=0x8x8", "local=0x8x8: accepted is PxQxR, each from 1 to 4096\n"),
        (HPCG, 2, "local=4096x4096x8", "local=4096x4096x8: accepted are up to 2^26 points of a rank\n"),
        (HPCG, 2, "levels=13", "levels=13: accepted is 0 to 12\n"),
        (HPCG, 2, "check=2", "check=2: accepted is 0 or 1\n"),
        (HPCG, 2, "rows=8", "rows=8: accepted are local=, grid=, levels=, iterations= and check=, each with a value\n"),
        (NEKBONE, 3, "grid=2x1x1", "grid=2x1x1: accepted are sides whose product is 3, the number of ranks\n"),
        (NEKBONE, 2, "nx1=65", "nx1=65: accepted is 2 to 64\n"),
        (NEKBONE, 2, "nx1=one", "nx1=one: a whole number from 2 to 2^30 is needed\n"),
        (NEKBONE, 2, "iterations=10001", "iterations=10001: accepted is 1 to 10000\n"),
        (NEKBONE, 2, "local=99x99x99", "local=99x99x99 with nx1=10: accepted are up to 2^26 points of a rank\n"),
    ],
)
def test_what_they_cannot_do_is_said(
    native: Native, programs: Programs, program: Path, ranks: int, word: str, sentence: str
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(ranks, programs(program), word)
    assert refused.value.returncode == 2
    assert refused.value.stderr.endswith(sentence)


def _of_skeleton(
    dryfly: Dryfly, folder: Path, name: str, nodes: int, ppn: int, words: dict[str, str], mpi: str
) -> tuple[Counter[int], float]:
    """Messages by size, and what an iteration takes."""
    spec, listing = folder / "spec", folder / "messages"
    job = ("--machine", "aurora", "-N", str(nodes), "--ppn", str(ppn), "--compute", "model", "--software", "none")
    spec.write_text(dryfly("spec", *job, *AT_ONCE).succeeded().stdout, encoding="utf-8")
    engine = Path(os.environ.get("DRYFLY_MOTIF") or paths.native("dryfly-motif"))
    given = [f"{key}={value}" for key, value in words.items()]
    command = [engine, spec, name, f"nodes={nodes}", f"ppn={ppn}", "level=links", "on_node=nic", f"library={mpi}"]
    ran = subprocess.run(
        [*command, *given, f"messages={listing}"], check=True, capture_output=True, text=True, timeout=120
    )
    sent = Counter(int(line.split()[2]) for line in listing.read_text(encoding="utf-8").splitlines())
    return sent, json.loads(ran.stdout)["virtual_ps"] * 1e-12


@pytest.mark.parametrize(
    ("program", "nodes", "ppn", "local", "mpi"),
    [
        (HPCG, 8, 1, "8x16x16", "mpich"),
        (HPCG, 27, 1, "8x16x8", "mpich"),
        pytest.param(HPCG, 16, 4, "16x32x16", "mpich", marks=pytest.mark.slow),
        (HPCG, 8, 1, "8x8x16", "openmpi"),
        (NEKBONE, 8, 1, "1x3x2", "mpich"),
        (NEKBONE, 27, 1, "2x1x3", "mpich"),
        pytest.param(NEKBONE, 16, 4, "4x4x4", "mpich", marks=pytest.mark.slow),
        (NEKBONE, 8, 1, "4x4x4", "openmpi"),
    ],
)
def test_the_skeleton_sends_what_the_program_sends(
    dryfly: Dryfly, programs: Programs, tmp_path: Path, program: Path, nodes: int, ppn: int, local: str, mpi: str
) -> None:
    """The same number of messages of each size; on 8 ranks of MPICH the solution is compared too."""
    words = {"local": local, "iterations": str(ITERATIONS)}
    job = ("--machine", "aurora", "-N", str(nodes), "--ppn", str(ppn), "--compute", "none", "--software", "none")
    record, is_checked = tmp_path / "record", nodes == 8 and mpi == "mpich"
    started = programs(program) if mpi == "mpich" else program
    given = [*(f"{key}={value}" for key, value in words.items()), f"check={int(is_checked)}"]
    with_record = ("--mpi", mpi, "--on-node", "provider", "--record", str(record))
    run = dryfly("run", *job, *with_record, "--", started, *given, limit_s=240.0).succeeded()
    assert ("valid" in run.stdout) == is_checked
    took = re.search(r"^an iteration takes ([\d.]+) us", run.stdout, re.MULTILINE)
    assert took is not None
    sent, time_s = _of_skeleton(dryfly, tmp_path, program.stem, nodes, ppn, words, mpi)
    assert sent == Counter(sizes_within(record, "MPI_Barrier"))
    print(program.stem, nodes, ppn, local, mpi, f"{time_s * 1e6 / float(took[1]) - 1:+.2%}")
    assert time_s * 1e6 == pytest.approx(float(took[1]), rel=0.05)


def _held(dryfly: Dryfly, folder: Path, local: str, program: str) -> tuple[int, str, dict[str, object]]:
    answer = folder / "answer.json"
    asked = ("predict", "hpcg", "-N", "2", "--ppn", "2", f"local={local}", "--program", program)
    ended = dryfly(*asked, "--json", str(answer), limit_s=120.0)
    content = json.loads(answer.read_text(encoding="utf-8"))["program"] if answer.exists() else {}
    return ended.exit_status, ended.stdout + ended.stderr, content


def test_predict_holds_a_skeleton_against_a_program(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """With the checks of the program before and after what is timed, which are no iterations."""
    program = f"{programs(HPCG)} local=8x8x16 iterations=6"
    status, _, found = _held(dryfly, tmp_path, "8x8x16", program)
    assert (status, found["within"]) == (0, True)
    assert found["iterations"] >= 6
    for each in found["classes"]:
        assert each["program_messages"] == each["skeleton_messages"] > 0
        assert each["program_bytes"] == each["skeleton_bytes"]
    status, said, found = _held(dryfly, tmp_path, "16x8x16", program)
    assert (status, found["within"]) == (1, False)
    assert "the skeleton lies more than 10% from the program in" in said


def test_a_program_that_fails_or_iterates_not_is_said(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    status, said, _ = _held(dryfly, tmp_path, "8x8x8", f"{programs(HPCG)} local=9x9x9")
    assert status == 2
    assert f"--program {programs(HPCG)}: local=9x9x9: accepted are multiples of 8, which levels=4 asks for;" in said
    status, said, _ = _held(dryfly, tmp_path, "8x8x8", str(tmp_path / "nothing"))
    assert status == 2
    assert "nothing" in said
    for program in (f"{programs.micro('pingpong.c')} count=3", "true"):
        status, said, _ = _held(dryfly, tmp_path, "8x8x8", program)
        assert status == 1
        assert "do not come twice on each rank" in said
