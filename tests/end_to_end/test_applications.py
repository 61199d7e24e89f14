"""Applications as Debian builds them, and ends of programs on its bindings of Fortran: nothing of them is changed."""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from launched import PROGRAMS, Run

from dryfly.mpi import libraries

Start = Callable[..., Run]

_LIMIT_S = 300  # on a busy computer; alone each takes seconds
_INPUTS = Path(__file__).parent / "applications"
_UNPACKED = Path(__file__).parents[2] / ".stamps" / "applications"
_LIB = next(iter(sorted(_UNPACKED.glob("usr/lib/*-linux-gnu"))), _UNPACKED)


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of their programs, which this process's environment makes work from where they are unpacked."""
    if not (_UNPACKED / "usr" / "bin").is_dir():
        pytest.skip(f"{_UNPACKED} is empty: apt could not fetch the applications (make test-setup)")
    folders = [_LIB, _LIB / "lapack", _LIB / "blas"]
    monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(str(folder) for folder in folders))
    monkeypatch.setenv("NWCHEM_BASIS_LIBRARY", f"{_UNPACKED}/usr/share/nwchem/libraries/")
    monkeypatch.setenv("CP2K_DATA_DIR", f"{_UNPACKED}/usr/share/cp2k")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PATH", f"{_UNPACKED}/usr/bin:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    for path in _INPUTS.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "Si.upf").write_text(pseudopotential(), encoding="utf-8")
    return _UNPACKED / "usr" / "bin"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same libraries without bindings of Fortran, so that Debian's own have to do."""
    prefixes = [libraries.select(family).prefix for family in ("mpich", "openmpi")]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for prefix in prefixes:
        libraries.add(f"{Path(prefix).name}={prefix}")


@dataclass(frozen=True, kw_only=True)
class Application:
    program: str
    arguments: tuple[str, ...]
    ranks: int
    energy: str  # expression for it


_WATER = ("water.nw",)
_NWCHEM = r"Total SCF energy = +(-[\d.]+)"
_APPLICATIONS = {
    "nwchem.openmpi": Application(program="nwchem.openmpi", arguments=_WATER, ranks=2, energy=_NWCHEM),
    "nwchem.mpich": Application(program="nwchem.mpich", arguments=_WATER, ranks=2, energy=_NWCHEM),
    "pw.x": Application(
        program="pw.x", arguments=("-in", "silicon.in"), ranks=4, energy=r"! +total energy += +(-[\d.]+)"
    ),
    "cp2k": Application(program="cp2k.psmp", arguments=("water.inp",), ranks=4, energy=r"ENERGY\|.* (-[\d.]+)"),
}


def _energy(output: str, application: Application) -> str:
    found = re.findall(application.energy, output)
    assert found, output[-3000:]
    return str(found[-1])


def _natively(bin_folder: Path, application: Application) -> str:
    """On Debian's own Open MPI. NWChem too where it is MPICH's: Debian's MPICH 4.0 gives it another energy on two ranks
    of one host than on one, and does not converge."""
    program = application.program.replace("mpich", "openmpi")
    command = [str(bin_folder / "orterun"), "--allow-run-as-root", "--oversubscribe", "-n", str(application.ranks)]
    settings = {
        "OPAL_PREFIX": str(_UNPACKED / "usr"),
        "OMPI_MCA_btl": "self,vader",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    ended = subprocess.run(
        [*command, str(bin_folder / program), *application.arguments],
        check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_S,
        env={**os.environ, **settings},
    )  # fmt: skip
    return _energy(ended.stdout, application)


@pytest.mark.parametrize("name", ["nwchem.openmpi", "cp2k"])
def test_an_application_gives_its_native_energy(start: Start, debian: Path, name: str) -> None:
    application = _APPLICATIONS[name]
    expected = _natively(debian, application)
    status, output, errors = start(
        "-n", str(application.ranks), "--", application.program, *application.arguments
    ).end(timeout=_LIMIT_S)  # fmt: skip
    assert status == 0, errors
    assert _energy(output, application) == expected


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("name", "aliases", "missing"),
    [
        ("nwchem.mpich", {"libmpich.so.12": "libmpi.so.12"}, "PMPIX_Delete_error_code"),
        ("pw.x", {"libopen-pal.so.40": "libopen-pal.so.80"}, "PMPIX_Bcast_init"),
    ],
)
def test_on_debians_own_bindings_it_is_the_same(
    start: Start, debian: Path, name: str, aliases: dict[str, str], missing: str
) -> None:
    application = _APPLICATIONS[name]
    expected = _natively(debian, application)
    run = start("-v", "-n", str(application.ranks), "--", application.program, *application.arguments)
    status, output, errors = run.end(timeout=_LIMIT_S)
    assert status == 0, errors
    assert _energy(output, application) == expected
    mpi = run.result()["mpi"]
    assert mpi["aliases"] == aliases
    assert missing in mpi["missing"]
    for alias, file in aliases.items():
        assert f"{alias} is {file} of {mpi['name']}\n" in errors
    assert f" {missing}" in errors


@pytest.mark.usefixtures("bare")
def test_debians_own_open_mpi_is_a_library_as_others_are(start: Start, debian: Path) -> None:
    libraries.add(f"debian={_UNPACKED / 'usr'}")
    application = _APPLICATIONS["pw.x"]
    expected = _natively(debian, application)
    run = start("--mpi", "debian", "-n", "4", "--", application.program, *application.arguments)
    status, output, errors = run.end(timeout=_LIMIT_S)
    assert status == 0, errors
    assert _energy(output, application) == expected
    assert run.result()["mpi"]["libmpi"] == [str(_LIB / "libmpi.so.40")]


@pytest.mark.usefixtures("debian")
def test_the_wrong_library_is_refused_with_what_to_say(start: Start) -> None:
    status, _, errors = start("--mpi", "mpich", "--", "pw.x").end()
    assert status == 2
    assert "pw.x is linked against Open MPI (libmpi_mpifh.so.40)" in errors
    assert "leave --mpi out or say --mpi openmpi" in errors


@pytest.fixture(params=["mpich", "openmpi"])
def ends(request: pytest.FixtureRequest, debian: Path, tmp_path: Path) -> tuple[str, str]:
    """The program, on Debian's bindings of the family, and the handle that MPI_COMM_WORLD is in Fortran."""
    if shutil.which("gfortran") is None:
        pytest.skip("there is no gfortran")
    assert debian.is_dir()
    bindings, world = {"mpich": ("libmpichfort.so.12", 0x44000000), "openmpi": ("libmpi_mpifh.so.40", 0)}[request.param]
    program = tmp_path / f"ends-{request.param}"
    command = ["gfortran", str(PROGRAMS / "ends.f90"), "-o", str(program), f"-L{_LIB}", f"-l:{bindings}"]
    subprocess.run([*command, "-Wl,--allow-shlib-undefined"], check=True)
    return str(program), str(world)


@pytest.mark.usefixtures("bare")
def test_a_program_may_end_by_every_way_out(start: Start, ends: tuple[str, str]) -> None:
    program, world = ends
    expected = {
        "normal": (0, ""),
        "stop": (0, ""),
        "failed": (3, "rank 1 on t1 .* exited with status 3; the job was ended"),
        "abort": (5, "rank 1 on t1 called MPI_Abort with code 5"),
        "signal": (139, r"rank 1 on t1 .* was killed by signal 11 \(Segmentation fault\); the job was ended"),
        "early": (1, "rank 1 on t1 ended without calling MPI_Finalize; the job was ended"),
        "left": (
            3,
            r"deadlock: nothing is in flight, 1 rank has come to MPI_Finalize(.|\n)*"
            r"rank 0 on t0: MPI_Barrier\n +rank 1 on t1: MPI_Finalize",
        ),
    }
    for way, (status, says) in expected.items():
        ended, output, errors = start("--quiet", "-n", "2", "--timeout", "50", "--", program, way, world).end()
        assert (way, ended) == (way, status), errors
        assert re.search(says, errors), f"{way}: {errors}"
        if way == "normal":
            assert output == "done\n"


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("ends", ["openmpi"], indirect=True)
def test_a_rank_that_goes_on_behind_its_end_is_named(start: Start, ends: tuple[str, str]) -> None:
    program, world = ends
    run = start("-n", "2", "--", program, "stays", world)
    assert run.process.stderr is not None
    says = r"rank 1 on t1 \(pid \d+\) has not ended: every rank was in MPI_Finalize 10 s ago, and it computes"
    assert any(re.search(says, line) for line in run.process.stderr)
    run.process.terminate()
    assert run.end()[0] == 128 + signal.SIGTERM


def pseudopotential() -> str:
    """Silicon as a local potential with the 4 outer electrons, in the form of Appelbaum and Hamann (Physical Review B
    8, 1777, 1973): a screened charge and a short-ranged part. Written in Quantum ESPRESSO's format, UPF 2."""
    count, step = 400, 0.0255
    radii = [math.exp(-7 + step * place) for place in range(count)]
    width, constant, slope, charge, cloud = 0.6102, 3.042, -1.372, 4.0, 0.8
    potential = [
        2 * ((constant + slope * r * r) * math.exp(-width * r * r) - charge / r * math.erf(math.sqrt(width) * r))
        for r in radii
    ]
    norm = 4 * math.pi * charge / (math.pi / cloud) ** 1.5
    density = [norm * r * r * math.exp(-cloud * r * r) for r in radii]

    def table(name: str, values: list[float]) -> str:
        numbers = "\n".join(f"{value:.12E}" for value in values)
        return f'<{name} type="real" size="{count}" columns="1">\n{numbers}\n</{name}>\n'

    header = {
        "element": "Si", "pseudo_type": "NC", "relativistic": "no", "is_ultrasoft": "F", "is_paw": "F",
        "is_coulomb": "F", "has_so": "F", "has_wfc": "F", "has_gipaw": "F", "core_correction": "F",
        "functional": "SLA PZ NOGX NOGC", "z_valence": "4.0", "total_psenergy": "0.0", "wfc_cutoff": "0.0",
        "rho_cutoff": "0.0", "l_max": "0", "l_local": "0", "mesh_size": str(count), "number_of_wfc": "0",
        "number_of_proj": "0", "generated": "", "author": "", "date": "", "comment": "",
    }  # fmt: skip
    facts = "\n".join(f'{name}="{value}"' for name, value in header.items())
    return (
        f'<UPF version="2.0.1">\n<PP_HEADER {facts}/>\n<PP_MESH mesh="{count}">\n'
        + table("PP_R", radii)
        + table("PP_RAB", [step * r for r in radii])
        + "</PP_MESH>\n"
        + table("PP_LOCAL", potential)
        + "<PP_NONLOCAL>\n</PP_NONLOCAL>\n<PP_PSWFC>\n</PP_PSWFC>\n"
        + table("PP_RHOATOM", density)
        + "</UPF>\n"
    )
