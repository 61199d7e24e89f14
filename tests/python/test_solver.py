from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from dryfly.apps import solver
from dryfly.base.errors import UserError
from dryfly.mpi.libraries import MpiLibrary


def library(prefix: Path, family: str = "mpich") -> MpiLibrary:
    return MpiLibrary(name="mine", family=family, version="", prefix=str(prefix), libmpi="/a", libfabric="/b")


@pytest.mark.parametrize(
    ("asked", "arguments", "ranks"),
    [
        (3, ("--grid", "2x2"), 3),
        (None, ("-N", "100", "--grid", "2x3"), 6),
        (None, ("--grid=4x1,1x4",), 4),
        (None, ("-N", "100"), len(os.sched_getaffinity(0))),
        (None, ("--help",), 1),
    ],
)
def test_ranks_are_what_is_asked_or_what_the_grid_needs_or_one_a_core(
    asked: int | None, arguments: tuple[str, ...], ranks: int
) -> None:
    assert solver._ranks(asked, arguments) == ranks


def test_ranks_are_what_an_hpl_dat_needs_that_will_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cores = len(os.sched_getaffinity(0))
    lines = [*["one"] * 10, "7 1 Ps", "3 4 Qs"]
    (tmp_path / "HPL.dat").write_text("\n".join(lines))
    (tmp_path / "other.dat").write_text("\n".join([*lines[:10], "1", "5"]))
    assert solver._ranks(None, (), reads_data_file=True) == 21
    assert solver._ranks(None, ("--dat=other.dat",), reads_data_file=True) == 5
    assert solver._ranks(2, (), reads_data_file=True) == 2
    assert solver._ranks(None, ("-N", "9"), reads_data_file=True) == cores
    assert solver._ranks(None, ("--dat", "missing"), reads_data_file=True) == cores
    assert solver._ranks(None, ()) == cores  # dryfly-mxp reads none


def test_no_ranks_are_refused() -> None:
    with pytest.raises(UserError, match="-n 0: accepted is 1 or more ranks"):
        solver._ranks(0, ())


def test_ranks_are_bound_to_cores_only_while_there_are_enough(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    assert solver._binding(library(tmp_path), cores) == ["-bind-to", "core"]
    assert solver._binding(library(tmp_path), cores + 1) == []


def test_an_mpi_without_a_compiler_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="MPI library mine has no mpicxx, so dryfly-hpl cannot be compiled with it"):
        solver.build("dryfly-hpl", mpi=library(tmp_path))


def test_a_compiler_that_fails_is_said_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiler = tmp_path / "bin" / "mpicxx"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\necho 'no such header' >&2\nexit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(UserError, match="dryfly-hpl does not compile with"):
        solver.build("dryfly-hpl", mpi=library(tmp_path))
    assert "no such header" in capfd.readouterr().err
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_of_two_that_need_a_program_at_once_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiler = tmp_path / "bin" / "mpicxx"
    compiler.parent.mkdir()
    compiler.write_text(
        '#!/bin/sh\nfor word do case $before in -o) echo >"$word";; esac; before=$word; done\n'
        f'echo "$before" >>{tmp_path}/calls\nsleep 0.01\n'
    )
    compiler.chmod(0o755)
    programs: list[Path] = []
    needing = [
        threading.Thread(target=lambda: programs.append(solver.build("dryfly-hpl", mpi=library(tmp_path))))
        for _ in range(2)
    ]
    for each in needing:
        each.start()
    for each in needing:
        each.join()
    assert programs[0] == programs[1]
    assert programs[0].is_file()
    assert (
        len((tmp_path / "calls").read_text().splitlines()) == len(solver.sources_of("dryfly-hpl")) + 1
    )  # it is linked
