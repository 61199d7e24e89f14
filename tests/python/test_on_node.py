"""`--on-node`: what each choice means for the MPI libraries, and what is chosen where it is left open."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.base.paths import programs_folder
from dryfly.case import on_node, program
from dryfly.case.on_node import OnNode
from dryfly.mpi.libraries import MpiLibrary


def mpich(version: str) -> MpiLibrary:
    return MpiLibrary(name=f"mpich-{version}", family="mpich", version=version, prefix="", libmpi="", libfabric="")


def chosen(source: Path | None, *, version: str = "5.0.2", asked: str = "auto", provider: str = "cxi",
           several_ranks: bool = True) -> OnNode:  # fmt: skip
    return on_node.choose(
        asked, files=[source] if source else [], mpi=mpich(version), provider=provider, several_ranks=several_ranks
    ).on_node


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_mpich_before_4_3_is_refused_for_shared_memory_only() -> None:
    with pytest.raises(UserError, match=r"accepted is MPICH 4\.3 or newer, and mpich-4\.1\.3 is older"):
        on_node.check(mpich("4.1.3"), OnNode.SHARED)
    on_node.check(mpich("4.1.3"), OnNode.PROVIDER)
    on_node.check(mpich("4.3.2"), OnNode.SHARED)
    on_node.check(mpich(""), OnNode.SHARED)  # an existing prefix, whose version is not known


def test_another_word_is_refused() -> None:
    with pytest.raises(UserError, match=r'--on-node "memory": accepted is auto or provider or shared'):
        OnNode.parse("memory")


@pytest.mark.parametrize(
    ("name", "text", "asks"),
    [
        ("a.c", "MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, i, &n);", True),
        ("a.f90", "  call mpi_win_allocate_shared(s, 1, i, c, p, w, e)", True),
        ("a.py", "node = comm.Split_type(MPI.COMM_TYPE_SHARED)", True),
        ("b.py", "window = MPI.Win.Allocate_shared(8, 1)", True),
        ("b.c", "MPI_Comm_split(c, 0, 0, &n); /* split_typed */", False),
        ("c.py", "comm.Split(0)", False),
    ],
)
def test_a_program_that_asks_for_its_node_gets_it(tmp_path: Path, name: str, text: str, asks: bool) -> None:
    source = written(tmp_path, name, text)
    assert chosen(source) is (OnNode.SHARED if asks else OnNode.PROVIDER)
    assert bool(on_node.question(source)) is asks


def test_what_the_user_says_counts_and_else_only_where_ranks_share_a_node(tmp_path: Path) -> None:
    source = written(tmp_path, "a.c", "MPI_Win_allocate_shared(")
    assert chosen(source, asked="provider") is OnNode.PROVIDER
    assert chosen(None, asked="shared") is OnNode.SHARED
    assert chosen(source, several_ranks=False) is OnNode.PROVIDER
    assert chosen(source, version="4.2.3") is OnNode.PROVIDER
    assert chosen(None) is OnNode.PROVIDER


@pytest.mark.parametrize("name", ["MPIR_CVAR_NOLOCAL", "MPICH_NO_LOCAL"])
def test_mpichs_own_word_that_ranks_are_alone_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = written(tmp_path, "a.c", "MPI_Win_allocate_shared(")
    monkeypatch.setenv(name, "0")
    assert chosen(source) is OnNode.SHARED
    on_node.check_settings(mpich("5.0.2"), OnNode.SHARED)
    monkeypatch.setenv(name, "1")
    assert chosen(source) is OnNode.PROVIDER
    on_node.check_settings(mpich("5.0.2"), OnNode.AUTO)
    with pytest.raises(UserError, match=f"{name}=1 and --on-node shared: .*; accepted is one of the two"):
        on_node.check_settings(mpich("5.0.2"), OnNode.SHARED)


def test_microbenchmarks_use_the_librarys_own_way() -> None:
    assert chosen(programs_folder() / "benchmark" / "alltoall.c") is OnNode.SHARED


def test_with_linkx_windows_ask_for_the_node_and_microbenchmarks_do_not(tmp_path: Path) -> None:
    assert chosen(written(tmp_path, "a.c", "MPI_Win_allocate_shared("), provider="linkx") is OnNode.SHARED
    assert chosen(programs_folder() / "benchmark" / "alltoall.c", provider="linkx") is OnNode.PROVIDER
    assert chosen(written(tmp_path, "b.c", "MPI_Send("), provider="linkx") is OnNode.PROVIDER


def compiled(source: Path, *options: str | Path) -> Path:
    target = source.with_suffix("")
    subprocess.run(["gcc", str(source), "-o", str(target), *map(str, options)], check=True)
    return target


def shared_library(folder: Path, name: str, text: str) -> Path:
    folder.mkdir()
    return compiled(written(folder, f"{name}.so.c", text), "-shared", "-fPIC")


def test_what_mpis_own_libraries_call_asks_for_nothing(tmp_path: Path) -> None:
    """As the Fortran bindings do, which an RPATH of the program names."""
    fortran = shared_library(
        tmp_path / "lib", "libmpifort", "int MPI_Comm_split_type(void); int f(void) { return MPI_Comm_split_type(); }"
    )
    main = written(tmp_path, "a.c", "int f(void); int main(void) { return f(); }")
    found_by = (f"-L{fortran.parent}", "-lmpifort", f"-Wl,-rpath,{fortran.parent}")
    assert on_node.question(compiled(main, *found_by, "-Wl,--unresolved-symbols=ignore-all")) == ""


def test_a_library_of_the_programs_own_is_found_by_ld_library_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = shared_library(
        tmp_path / "lib", "libsolve", "int MPI_Comm_split_type(void); int f(void) { return MPI_Comm_split_type(); }"
    )
    main = written(tmp_path, "a.c", "int f(void); int main(void) { return f(); }")
    made = compiled(main, f"-L{library.parent}", "-lsolve", "-Wl,--unresolved-symbols=ignore-all")
    assert on_node.question(made) == ""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    assert on_node.question(made) == "it calls MPI_Comm_split_type"


def test_a_program_without_mpi_that_a_script_names_asks_for_nothing(tmp_path: Path) -> None:
    main = compiled(written(tmp_path, "a.c", "int main(void) { return 0; }"))
    runner = written(tmp_path, "run.sh", f"#!/bin/sh\n{main}\n")
    assert program.files_of((str(runner),)) == [runner]


def test_a_program_behind_a_wrapper_is_looked_at_too(tmp_path: Path) -> None:
    written(tmp_path, "a.py", "from mpi4py import MPI\nnode = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)\n")
    script = written(tmp_path, "run.sh", f"#!/bin/sh\nexec python3 {tmp_path}/a.py\n")
    script.chmod(0o755)
    for command in ((str(script),), ("python3", f"{tmp_path}/a.py"), ("env", "X=1", str(script))):
        assert any(on_node.question(file) for file in program.files_of(command)), command
    assert program.files_of(("nothing-of-this-name",)) == []
