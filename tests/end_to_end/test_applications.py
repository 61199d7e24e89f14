"""Applications as Debian builds them, and ends of programs on its bindings of Fortran: nothing of them is changed."""

from __future__ import annotations

import importlib.util
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from launched import PROGRAMS, Run

from dryfly.mpi import libraries

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tool"))

from atlas import debian as packages  # noqa: E402
from atlas import measure  # noqa: E402
from atlas.application import Application, read  # noqa: E402
from atlas.process import run as run_command  # noqa: E402

Start = Callable[..., Run]

_LIMIT_S = 300  # on a busy computer; alone each takes seconds
# Those of the atlas, with inputs that take less.
_TINY = {
    "nwchem-scf-openmpi": (2, ("tiny.nw",)),
    "nwchem-scf-mpich": (2, ("tiny.nw",)),
    "pw": (4, ("-in", "tiny.in")),
    "cp2k": (4, ("tiny.inp",)),
}


@pytest.fixture
def application(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    """By its name, in a folder with its inputs; this process's environment makes it work from where it is unpacked."""
    ranks, arguments = _TINY[request.param]
    made = replace(read(request.param), ranks=ranks, arguments=arguments)
    if not (packages.ROOT / "usr" / "bin" / made.program).is_file():
        pytest.skip(f"{packages.ROOT} has no {made.program}: apt could not fetch it (make test-setup)")
    for name, value in (measure.environment(made) | {"OMP_NUM_THREADS": "1"}).items():
        monkeypatch.setenv(name, value)
    with measure.prepared(made) as place:
        monkeypatch.chdir(place)
        yield made


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same libraries without bindings of Fortran, so that Debian's own have to do."""
    prefixes = [libraries.select(family).prefix for family in ("mpich", "openmpi")]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for prefix in prefixes:
        libraries.add(f"{Path(prefix).name}={prefix}")


def _natively(application: Application) -> str:
    command, settings = measure.native_command(application)
    ran = run_command(command, folder=Path.cwd(), environment=settings)
    return measure.merit_of(application, ran.output, Path.cwd())


def _simulated(start: Start, application: Application, *options: str) -> tuple[Run, str, str]:
    """The run, its figure of merit, and what dryfly has said."""
    run = start(*options, "-n", str(application.ranks), "--", application.program, *application.arguments)
    status, output, errors = run.end(timeout=_LIMIT_S)
    assert status == 0, errors
    return run, measure.merit_of(application, output, Path.cwd()), errors


@pytest.mark.parametrize("application", ["nwchem-scf-openmpi", "cp2k"], indirect=True)
def test_an_application_gives_its_native_energy(start: Start, application: Application) -> None:
    expected = _natively(application)
    assert _simulated(start, application)[1] == expected


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("application", "aliases", "missing"),
    [
        ("nwchem-scf-mpich", {"libmpich.so.12": "libmpi.so.12"}, "PMPIX_Delete_error_code"),
        ("pw", {"libopen-pal.so.40": "libopen-pal.so.80"}, "PMPIX_Bcast_init"),
    ],
    indirect=["application"],
)
def test_on_debians_own_bindings_it_is_the_same(
    start: Start, application: Application, aliases: dict[str, str], missing: str
) -> None:
    expected = _natively(application)
    run, energy, errors = _simulated(start, application, "-v")
    assert energy == expected
    mpi = run.result()["mpi"]
    assert mpi["aliases"] == aliases
    assert missing in mpi["missing"]
    for alias, file in aliases.items():
        assert f"{alias} is {file} of {mpi['name']}\n" in errors
    assert f" {missing}" in errors


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("application", ["pw"], indirect=True)
def test_debians_own_open_mpi_is_a_library_as_others_are(start: Start, application: Application) -> None:
    libraries.add(f"debian={packages.ROOT / 'usr'}")
    expected = _natively(application)
    run, energy, _ = _simulated(start, application, "--mpi", "debian")
    assert energy == expected
    assert run.result()["mpi"]["libmpi"] == [str(packages.library_folder() / "libmpi.so.40")]


@pytest.mark.parametrize("application", ["pw"], indirect=True)
@pytest.mark.usefixtures("application")
def test_the_wrong_library_is_refused_with_what_to_say(start: Start) -> None:
    status, _, errors = start("--mpi", "mpich", "--", "pw.x").end()
    assert status == 2
    assert "pw.x is linked against Open MPI (libmpi_mpifh.so.40)" in errors
    assert "leave --mpi out or say --mpi openmpi" in errors


@pytest.mark.slow
@pytest.mark.parametrize("application", ["pw"], indirect=True)
@pytest.mark.usefixtures("application")
def test_the_commands_of_the_guide_work_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But those that install: the application is unpacked, and pyarrow is there or what needs it is left out."""
    monkeypatch.chdir(tmp_path)
    Path("applications").symlink_to(ROOT / "applications")
    guide = (ROOT / "docs" / "guide" / "applications.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ (?!sudo )(.*)$", guide, re.MULTILINE)
    assert len(commands) == 11
    if importlib.util.find_spec("pyarrow") is None:
        commands = [command for command in commands if "recorded" not in command]
    script = "\n".join(["set -e", *commands])
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    assert ended.returncode == 0, ended.stderr
    for line in re.findall(r"^(!  .*|  program .*|  mpi  .*)$", guide, re.MULTILINE):
        assert line in ended.stdout + ended.stderr
    assert re.search(r"virtual time .*median", ended.stdout + ended.stderr, re.DOTALL)


@pytest.fixture(params=["mpich", "openmpi"])
def ends(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str]:
    """The program, on Debian's bindings of the family, and the handle that MPI_COMM_WORLD is in Fortran."""
    if shutil.which("gfortran") is None:
        pytest.skip("there is no gfortran")
    bindings, world = {"mpich": ("libmpichfort.so.12", 0x44000000), "openmpi": ("libmpi_mpifh.so.40", 0)}[request.param]
    libraries_of_debian = packages.library_folder()
    if not (libraries_of_debian / bindings).exists():
        pytest.skip(f"{libraries_of_debian} has no {bindings}: apt could not fetch it (make test-setup)")
    for name, value in packages.environment().items():
        monkeypatch.setenv(name, value)
    program = tmp_path / f"ends-{request.param}"
    command = ["gfortran", str(PROGRAMS / "ends.f90"), "-o", str(program), f"-L{libraries_of_debian}", f"-l:{bindings}"]
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
        "all": (1, r"rank \d on t\d ended without calling MPI_Finalize, or with a session of MPI open"),
        "errors": (4, r"rank \d on t\d .* exited with status 4; the job was ended"),
        "early": (1, "rank 1 on t1 ended without calling MPI_Finalize, or with a session of MPI open"),
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
        if way in ("all", "errors"):
            assert sorted(output.splitlines()) == ["leaves 0", "leaves 1"]


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
