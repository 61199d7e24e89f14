"""Fortran programs by each of its three interfaces, on both libraries: the right answers, in virtual time."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from harness import CHECK

from dryfly.base.paths import PRELOAD, native
from dryfly.mpi import libraries as mpi
from dryfly.mpi.preload import wrappers

_JOB = ("run", "--compute", "none", "--quiet")


@pytest.fixture(params=["mpich", "openmpi"])
def library(request: pytest.FixtureRequest) -> mpi.MpiLibrary:
    found = mpi.select(request.param)
    if found.wrapper("mpifort") is None or shutil.which("gfortran") is None:
        pytest.skip(f'"make test" could not set up gfortran, or "dryfly mpi fortran {found.name}"')
    return found


def _time(output: str, name: str) -> float:
    found = re.search(rf"{name} +([\d.]+(?:E[+-]\d+)?)", output)
    assert found is not None, output
    return float(found.group(1))


@pytest.mark.parametrize("interface", ["MPIF", "USE_MPI", "USE_F08"])
def test_clocks_are_virtual(dryfly: Dryfly, library: mpi.MpiLibrary, tmp_path: Path, interface: str) -> None:
    """Five times 1 MiB over a link of 25 GB/s: no less than 210 us; a real clock would show thousands, and never the
    same twice. Both clocks are read at the same instants but for the 25 ns that a reading takes."""
    program = tmp_path / "clocks"
    command = [str(library.wrapper("mpifort")), f"-D{interface}", str(CHECK / "fortran_clocks.F90"), "-o", str(program)]
    subprocess.run(command, check=True)
    outputs = [dryfly(*_JOB, "--mpi", library.name, "-n", "3", "--", program).succeeded().stdout for _ in range(2)]
    assert outputs[0] == outputs[1]
    wtime, clock = _time(outputs[0], "wtime"), _time(outputs[0], "system_clock")
    assert 210_000 < wtime < 300_000
    assert abs(wtime - clock) <= 50


def test_a_conjugate_gradient_as_nekbones_has_one_residual(dryfly: Dryfly, library: mpi.MpiLibrary) -> None:
    outputs = [
        dryfly(*_JOB, "--mpi", library.name, "-n", str(ranks), "--", CHECK / "fortran_cg.f").succeeded().stdout
        for ranks in (1, 2, 4)
    ]
    residuals = [_time(output, "residual") for output in outputs]
    assert residuals[0] == pytest.approx(0.11483, rel=1e-4)  # of about 50 before the first iteration
    assert residuals[1:] == pytest.approx([residuals[0]] * 2, rel=1e-11)
    # 60 sums over all ranks and 30 exchanges cannot take less than 90 messages do.
    assert _time(outputs[1], "seconds") > 90 * 1.5e-6


def test_lu_as_hpls_passes_its_check(dryfly: Dryfly, library: mpi.MpiLibrary) -> None:
    ended = dryfly(*_JOB, "--mpi", library.name, "-n", "4", "--ppn", "2", "--", CHECK / "fortran_lu.f90").succeeded()
    assert re.search(r"residual +\d+\.\d+ PASSED", ended.stdout)


def test_bindings_communicate_by_cs_functions_only(library: mpi.MpiLibrary) -> None:
    """So whatever Fortran calls is seen: each C function that they call is interposed or known to be local. What else
    they use of the library is its tables of attributes, infos and handles."""
    called: set[str] = set()
    inner: set[str] = set()
    there: set[str] = set()
    for path in sorted(library.fortran.glob("lib/lib*.so.*")):
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".dynsym")
            assert isinstance(table, SymbolTableSection)
            for symbol in table.iter_symbols():
                if symbol["st_shndx"] != "SHN_UNDEF" or path.name.startswith("libmpich.so"):
                    there.add(symbol.name)
                elif re.fullmatch(r"P?MPI_[A-Z][a-z0-9]\w*", symbol.name):
                    called.add(symbol.name.removeprefix("P").removeprefix("MPI_"))
                elif re.match(r"MPI[RDI]_|MPII_|ompi_|opal_|mca_", symbol.name):
                    inner.add(symbol.name)
    interposed = {name.removeprefix("P").removeprefix("MPI_") for name in wrappers(native(PRELOAD))}
    local = set((Path(__file__).parent / "local_mpi_functions.txt").read_text().splitlines()[1:])
    assert len(called) > 290
    assert called <= interposed | local
    tables = (
        r"\w*(attr|keyval|grequest|errcode|errhandler|info|fortran|null|datatype|datareps|status_empty|param_check)\w*"
    )
    others = {"ompi_instance_count", "opal_argv_free"}
    rest = {name for name in inner - there - others if not re.fullmatch(tables, name, re.IGNORECASE)}
    assert not {name for name in rest if not name.startswith(("opal_class", "opal_list", "opal_uses_threads"))}


def test_without_bindings_the_command_that_adds_them_is_named(
    dryfly: Dryfly, library: mpi.MpiLibrary, tmp_path: Path
) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    dryfly("mpi", "add", f"bare={library.prefix}", environment=environment).succeeded()
    ended = dryfly(*_JOB, "--mpi", "bare", "--", CHECK / "fortran_cg.f", environment=environment)
    assert ended.exit_status == 2
    assert 'MPI library bare has no Fortran bindings; run "dryfly mpi fortran bare" first' in ended.stderr


def test_what_is_no_mpi_with_fortran_is_refused(dryfly: Dryfly, library: mpi.MpiLibrary, tmp_path: Path) -> None:
    for prefix in (tmp_path, Path(library.prefix)):
        ended = dryfly("mpi", "fortran", library.name, "--from", prefix)
        assert ended.exit_status == 2
        assert f"{prefix} has no " in ended.stderr
    assert library.wrapper("mpifort") is not None  # what was there has stayed
