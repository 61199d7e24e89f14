"""The manager of MPI libraries, on made-up prefixes: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case import on_node
from dryfly.mpi import fortran, intel, launchers, openmpi
from dryfly.mpi import libraries as mpi


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def prefix(tmp_path: Path, compile_c: Callable[..., Path]) -> Path:
    """An MPI installation with its own libfabric in a folder beside libmpi, as MPICH's wheels have it."""
    library = tmp_path / "opt" / "lib"
    (library / "mpich").mkdir(parents=True)
    fabric = compile_c("int f;\n", "-shared", "-fPIC", "-Wl,-soname,libfabric.so.1", name="libfabric.so.1")
    fabric.rename(library / "mpich" / "libfabric.so.1")
    code = "extern int f; int g(void) { return f; }\n"
    flags = ("-shared", "-fPIC", f"-L{library}/mpich", "-l:libfabric.so.1", "-Wl,-rpath,$ORIGIN/mpich")
    compile_c(code, *flags, name="libmpi.so.12").rename(library / "libmpi.so.12")
    return library.parent


def test_an_existing_prefix_is_noted_with_its_own_libfabric(prefix: Path, cache: Path) -> None:
    added = mpi.add(f"mine={prefix}")
    assert added.libfabric == str(prefix / "lib" / "mpich" / "libfabric.so.1")
    assert added.library_folders == [str(prefix / "lib"), str(prefix / "lib" / "mpich")]
    assert mpi.installed() == [added]
    assert mpi.select("mine") == mpi.select(None) == added
    mpi.remove("mine")
    assert mpi.installed() == []
    assert prefix.is_dir()
    assert not (cache / "dryfly" / "mpi" / "mine").exists()


def test_a_library_without_libfabric_is_refused_with_what_to_do(tmp_path: Path, compile_c: Callable[..., Path]) -> None:
    library = tmp_path / "old" / "lib"
    library.mkdir(parents=True)
    compile_c("int g;\n", "-shared", "-fPIC", name="libmpi.so.12").rename(library / "libmpi.so.12")
    with pytest.raises(UserError, match=r"comes without libfabric.*use another version"):
        mpi.add(f"old={tmp_path / 'old'}")
    assert mpi.installed() == []


def test_debians_mpich_is_named_where_nothing_else_is_found(tmp_path: Path, compile_c: Callable[..., Path]) -> None:
    """It is beside the folder that its packages call its prefix."""
    (tmp_path / "usr" / "lib" / "mpich").mkdir(parents=True)
    library = tmp_path / "usr" / "lib" / "libmpich.so.12"
    compile_c("int g;\n", "-shared", "-fPIC", name="libmpich.so.12").rename(library)
    says = rf"none of libmpi.so.12.*; {library} is MPICH as Debian has it and cannot be used, for it comes without lib"
    for prefix in (library.parent / "mpich", tmp_path / "usr"):
        with pytest.raises(UserError, match=says):
            mpi.add(f"x={prefix}")


def test_an_mpi_of_another_family_in_the_same_prefix_is_told(prefix: Path, compile_c: Callable[..., Path]) -> None:
    added = mpi.add(f"mine={prefix}")
    assert mpi.passed_over(added) == ""
    (prefix / "lib" / "libmpi.so.12").rename(prefix / "lib" / "libmpi.so.40")
    added = mpi.add(f"mine={prefix}")
    assert (added.family, mpi.passed_over(added)) == ("openmpi", "")
    other = compile_c("int g;\n", "-shared", "-fPIC", name="libmpich.so.12").rename(prefix / "lib" / "libmpich.so.12")
    assert mpi.passed_over(added) == (
        f"mine: not taken is the MPICH there ({other}), which comes without libfabric and cannot be used; its programs "
        "run on mpich==5.0.2"
    )


@pytest.mark.parametrize("version", ["3.4.3", "3.4.3.post1"])
def test_an_mpich_whose_tags_do_not_fit_is_refused_with_what_to_do(version: str) -> None:
    with pytest.raises(UserError, match=rf"mpich=={version}: .* matches 48.*mpich==5\.0\.2"):
        mpi.add(f"mpich=={version}")


def test_a_program_of_open_mpi_gets_open_mpi_by_itself(
    prefix: Path, tmp_path: Path, compile_c: Callable[..., Path]
) -> None:
    mpi.add(f"mine={prefix}")
    with pytest.raises(UserError, match=r'uses Open MPI; run "dryfly mpi add openmpi==.*" first'):
        mpi.select(None, needed="openmpi")
    library = tmp_path / "other" / "lib"
    (library / "openmpi").mkdir(parents=True)
    for name in ("libfabric.so.1", "libpmix.so.2"):
        compile_c("int f;\n", "-shared", "-fPIC", f"-Wl,-soname,{name}", name=name).rename(library / "openmpi" / name)
    flags = ("-shared", "-fPIC", f"-L{library}/openmpi", "-l:libfabric.so.1", "-Wl,-rpath,$ORIGIN/openmpi")
    code = "extern int f; int g(void) { return f; }\n"
    compile_c(code, *flags, name="libmpi.so.40").rename(library / "libmpi.so.40")
    added = mpi.add(f"other={library.parent}")
    assert added.family == "openmpi"
    assert mpi.select(None, needed="openmpi") == added
    assert mpi.select(None).name == "mine"
    assert openmpi.pmix_server(added) == library / "openmpi" / "libpmix.so.2"
    (library / "openmpi" / "libpmix.so.2").unlink()
    with pytest.raises(UserError, match=r"MPI library other: there is neither libpmix.so.2 nor libopen-pal.so.40"):
        openmpi.pmix_server(added)


def test_settings_of_open_mpi_that_the_user_has_made_stay(tmp_path: Path) -> None:
    library = mpi.MpiLibrary(
        name="x", family="openmpi", version="5.0.11", prefix="/p", libmpi=f"{tmp_path}/libmpi.so.40", libfabric="/p/f"
    )
    (tmp_path / "libpmix.so.2").touch()
    plain = openmpi.settings(library, folder=tmp_path, inherited={})
    assert plain["OMPI_MCA_pml"] == "cm"
    assert "OMPI_MCA_btl_ofi_mode" not in plain
    changed = openmpi.settings(library, folder=tmp_path, inherited={"OMPI_MCA_pml": "ob1"})
    assert "OMPI_MCA_pml" not in changed
    assert changed["OMPI_MCA_btl_ofi_mode"] == "2"
    assert plain["OMPI_MCA_osc"] == "rdma"
    for of_node in ({"shares_memory": True}, {"alone": True}):
        assert openmpi.settings(library, folder=tmp_path, inherited={}, **of_node)["OMPI_MCA_osc"] == "rdma,sm"


def _intel(tmp_path: Path) -> mpi.MpiLibrary:
    return mpi.MpiLibrary(
        name="impi-1",
        family="impi",
        version="2021.18.1",
        prefix="/p",
        libmpi=f"{tmp_path}/libmpi.so.12",
        libfabric="/f",
    )


def test_intel_mpi_is_a_family_of_its_own_with_mpichs_interface(prefix: Path) -> None:
    (prefix / "lib" / "libmpi_ilp64.so.4").touch()
    added = mpi.add(f"oneapi={prefix}")
    assert (added.family, added.interface) == ("impi", "mpich")
    assert mpi.select("impi") == added
    with pytest.raises(UserError, match="no MPI library is set up"):
        mpi.select(None)  # which is for who wants MPICH
    with pytest.raises(UserError, match="--on-node shared: Intel MPI's own shared memory"):
        on_node.check(added, on_node.OnNode.SHARED)
    assert not on_node.can_share(added)
    with pytest.raises(UserError, match=r"--launcher hydra: it starts programs of MPICH, and oneapi is Intel MPI"):
        launchers.prepare("hydra", added, node_of_rank=("a", "b"))
    with pytest.raises(UserError, match=r"oneapi brings its own Fortran bindings, without mpif\.h"):
        fortran.add(added, None)
    assert "compile with that of MPICH" in fortran.advice(added)


def test_settings_of_intel_mpi_that_the_user_has_made_stay(tmp_path: Path) -> None:
    plain = intel.settings(_intel(tmp_path), inherited={})
    assert (plain["I_MPI_ROOT"], plain["I_MPI_OFI_LIBRARY"], plain["I_MPI_FABRICS"]) == ("/p", "/f", "ofi")
    assert "I_MPI_PIN" not in intel.settings(_intel(tmp_path), inherited={"I_MPI_PIN": "1"})
    assert intel.settings_for_gpus(inherited={})["I_MPI_OFFLOAD_FAST_MEMCPY"] == "0"
    assert "I_MPI_OFFLOAD_FAST_MEMCPY" not in intel.settings_for_gpus(inherited={"I_MPI_OFFLOAD_FAST_MEMCPY": "1"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("I_MPI_FABRICS", "shm:ofi"),
        ("I_MPI_COLL_INTRANODE", "shm"),
        ("I_MPI_ASYNC_PROGRESS", "1"),
        ("MPIR_CVAR_ASYNC_PROGRESS", "yes"),
    ],
)
def test_what_virtual_time_cannot_follow_in_intel_mpi_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"{name}={value}: "):
        intel.check(_intel(tmp_path), {name: value})
    intel.check(_intel(tmp_path), {"I_MPI_FABRICS": "ofi", "I_MPI_ASYNC_PROGRESS": "0"})


def test_intels_compiler_wrappers_get_the_prefix(tmp_path: Path) -> None:
    (tmp_path / "mpigcc").write_bytes(b"#!/bin/sh\nprefix=I_MPI_SUBSTITUTE_INSTALLDIR\n")
    (tmp_path / "mpiexec").write_bytes(b"\x7fELF I_MPI_SUBSTITUTE_INSTALLDIR")
    mpi._fill_in_prefix(tmp_path, Path("/final"))
    assert (tmp_path / "mpigcc").read_bytes() == b"#!/bin/sh\nprefix=/final\n"
    assert (tmp_path / "mpiexec").read_bytes() == b"\x7fELF I_MPI_SUBSTITUTE_INSTALLDIR"


def test_what_has_vanished_is_said(prefix: Path) -> None:
    mpi.add(f"mine={prefix}")
    (prefix / "lib" / "libmpi.so.12").unlink()
    with pytest.raises(UserError, match=r"libmpi.so.12 is gone"):
        mpi.select("mine")


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("mpich", "accepted is mpich==5.0.2"),
        ("numpy==2.0", "accepted is mpich==5.0.2"),
        ("mine=relative/path", "accepted is"),
        ("../x=/tmp", "accepted is"),
        ("mine=/no/such/prefix", "is no folder"),
        ("mine=/tmp", "there is none of libmpi.so.12"),
    ],
)
def test_wrong_requests_are_refused(what: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        mpi.add(what)


def test_without_any_library_the_command_to_get_one_is_named() -> None:
    with pytest.raises(UserError, match=r"run \"dryfly mpi add mpich==5.0.2\""):
        mpi.select(None)
    with pytest.raises(UserError, match='unknown MPI library "intel"'):
        mpi.select("intel")
    with pytest.raises(UserError, match=r'mpich==9\.9 is not set up; run "dryfly mpi add mpich==9\.9" first'):
        mpi.select("mpich==9.9")
    with pytest.raises(UserError, match="unknown MPI library"):
        mpi.remove("../../x")
