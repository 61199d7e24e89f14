"""Ranks run on the run's MPI library, whatever the program loads itself, or are refused with one sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK

from dryfly.mpi import libraries as mpi
from dryfly.mpi import loading

_JOB = ("run", "-n", "2", "--compute", "none")
_OPENS = """\
import ctypes, sys
libraries = [ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL) for name in sys.argv[1:]]
libraries[-1].MPI_Init(None, None)
libraries[-1].MPI_Finalize()
"""
_TRIES = """\
import ctypes, sys
for name in sys.argv[1:]:
    try:
        library = ctypes.CDLL(name if "/" in name else name.replace("-", "."), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        last = error
        continue
    library.MPI_Init(None, None)
    sys.exit(library.MPI_Finalize())
raise last
"""
_SPLITS = """\
#include <mpi.h>
int main(int count, char** words) {
  MPI_Comm part;
  MPI_Init(&count, &words);
  MPI_Comm_split_type(MPI_COMM_WORLD, 4, 0, MPI_INFO_NULL, &part);
  return MPI_Finalize();
}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "opens.py"
    path.write_text(_OPENS)
    return path


def _copy(family: str, folder: Path, name: str = "") -> Path:
    """The system's, that is: of the same release, but another file."""
    library = Path(mpi.select(family).libmpi)
    return Path(shutil.copy(library.resolve(), folder / (name or library.name)))


@pytest.mark.parametrize(("family", "name"), [("mpich", ""), ("mpich", "libmpich.so.12"), ("openmpi", "")])
def test_a_path_to_a_library_of_the_family_opens_the_runs(
    dryfly: Dryfly, script: Path, tmp_path: Path, family: str, name: str
) -> None:
    run = dryfly(*_JOB, "--mpi", family, "--", script, _copy(family, tmp_path, name)).succeeded()
    assert [Path(path).parent for path in run.results["mpi"]["libmpi"]] == [Path(mpi.select(family).libmpi).parent]


def test_two_mpis_that_a_script_opens_are_both_named(dryfly: Dryfly, script: Path) -> None:
    other = Path(mpi.select("openmpi").libmpi)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", script, "libmpi.so.12", other)
    assert run.exit_status == 2, run.stderr
    says = (
        rf"has two MPIs in one process: \S+/libmpi.so.12 \(asked for by \S+\) and {re.escape(str(other))} \(asked for"
    )
    assert re.search(says, run.stderr)


def test_a_second_mpi_under_another_name_is_seen(dryfly: Dryfly, script: Path, tmp_path: Path) -> None:
    other = _copy("mpich", tmp_path, "libsolver.so")
    run = dryfly(*_JOB, "--mpi", "mpich", "--", script, "libmpi.so.12", other)
    assert run.exit_status == 2, run.stderr
    assert re.search(rf"has two MPIs in one process: \S+/libmpi.so.12 .* and {re.escape(str(other))} ", run.stderr)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", script, other)
    assert run.exit_status == 2, run.stderr
    assert re.search(rf"has loaded {re.escape(str(other))} .* in place of mpich", run.stderr)


def test_a_second_copy_of_what_open_mpi_is_built_on_is_seen(dryfly: Dryfly, script: Path, tmp_path: Path) -> None:
    own = Path(mpi.select("openmpi").libmpi)
    base = next(own.parent.glob("libopen-pal.so.*"))
    other = Path(shutil.copy(base.resolve(), tmp_path / "libtool.so"))
    run = dryfly(*_JOB, "--mpi", "openmpi", "--", script, own.name, other, own.name)
    assert run.exit_status == 2, run.stderr
    says = (
        rf"has two of Open MPI's libopen-pal in one process: \S+/{base.name} \(asked for by \S+/{own.name}\) and "
        rf"{re.escape(str(other))} \(asked for by"
    )
    assert re.search(says, run.stderr), run.stderr


def _puts_in_front(folder: Path, command: str) -> Path:
    """A script as one that loads an environment module."""
    wrapper = folder / "wrapper"
    wrapper.write_text(f'#!/bin/sh\nexport LD_LIBRARY_PATH="{folder}:$LD_LIBRARY_PATH"\n{command}\n')
    wrapper.chmod(0o755)
    return wrapper


def test_the_runs_library_comes_before_one_that_a_script_puts_in_front(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    _copy("mpich", tmp_path)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", _puts_in_front(tmp_path, f"exec {programs.check('p2p.c')}"))
    run.succeeded()
    assert [Path(path).parent for path in run.results["mpi"]["libmpi"]] == [Path(mpi.select("mpich").libmpi).parent]


def test_a_library_that_takes_the_place_of_the_runs_is_named(dryfly: Dryfly, tmp_path: Path) -> None:
    """By an RPATH, of a program that only a script names."""
    library, other = mpi.select("mpich"), _copy("mpich", tmp_path)
    (tmp_path / "split.c").write_text(_SPLITS)
    words = [f"-I{library.prefix}/include", "split.c", f"-L{tmp_path}", f"-l:{other.name}", "-o", "program"]
    rpath = f"-Wl,--disable-new-dtags,-rpath,{tmp_path}"
    subprocess.run(["gcc", *words, rpath, *library.link_options], check=True, cwd=tmp_path)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", _puts_in_front(tmp_path, f"exec {tmp_path}/program"))
    assert run.exit_status == 2, run.stderr
    assert f"has loaded {other} (asked for by the program) in place of mpich-" in run.stderr


def test_a_script_that_starts_a_launcher_is_refused(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\nmpiexec -n 2 {programs.check('p2p.c')}\n")
    script.chmod(0o755)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", script)
    assert run.exit_status == 2, run.stderr
    assert "a script starts mpiexec" in run.stderr
    assert "say how many ranks there are with dryfly run -n\n" in run.stderr


def test_a_launcher_of_another_release_is_named_in_a_script_too(dryfly: Dryfly, tmp_path: Path) -> None:
    """As Open MPI 4's, which asks for names of its own part, in place of which ranks have a part of release 5."""
    (tmp_path / "part.c").write_text("void orte_receive(void) {}\nint orte_flag;\n")
    (tmp_path / "run.c").write_text(
        "extern int orte_flag;\nvoid orte_receive(void);\nvoid (*receive)(void) = orte_receive;\n"
        "int main(void) { return orte_flag; }\n"
    )
    soname = "libopen-rte.so.40"
    words = ["-shared", "-fPIC", "part.c", f"-Wl,-soname,{soname}", "-o", soname]
    subprocess.run(["gcc", *words], check=True, cwd=tmp_path)
    subprocess.run(["gcc", "run.c", "-L.", f"-l:{soname}", "-o", "orterun"], check=True, cwd=tmp_path)
    (tmp_path / "mpirun").symlink_to("orterun")
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\n{tmp_path}/mpirun -n 2 true\n")
    script.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(tmp_path)}
    run = dryfly(*_JOB, "--mpi", "openmpi", "--", script, environment=environment)
    assert run.exit_status == 2, run.stderr
    assert "a script starts mpirun" in run.stderr


def test_an_mpi_that_the_user_preloads_is_refused(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int PMPI_Init(int* count, char*** words) { return 0; }\n")
    other, program = tmp_path / "other.so", programs.check("p2p.c")
    words = ["-shared", "-fPIC", "other.c", "-Wl,-soname,libmpi.so.40", "-o", str(other)]
    subprocess.run(["gcc", *words], check=True, cwd=tmp_path)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", program, environment={"LD_PRELOAD": str(other)})
    assert run.exit_status == 2, run.stderr
    assert f"LD_PRELOAD has {other} (libmpi.so.40, which is Open MPI's), an MPI library in front of mpich" in run.stderr
    for command in (("env", f"LD_PRELOAD={other}", program), ("sh", "-c", f"LD_PRELOAD={other} {program}")):
        run = dryfly(*_JOB, "--mpi", "mpich", "--", *command)
        assert run.exit_status == 2, run.stderr
        assert run.stderr.count(f"has {other} in LD_PRELOAD, an MPI library in front of mpich") == 1, run.stderr


def test_a_script_that_names_its_python_is_run_by_that_one(dryfly: Dryfly, tmp_path: Path) -> None:
    python, script = tmp_path / "python-of-its-own", tmp_path / "job.py"
    python.symlink_to(sys.executable)
    script.write_text(f"#!{python}\nprint(open('/proc/self/cmdline').read().split('\\0')[0])\n")
    for mode, expected in ((0o644, sys.executable), (0o755, str(python))):
        script.chmod(mode)
        run = dryfly("run", "-n", "1", "--compute", "none", "--mpi", "mpich", "--", script).succeeded()
        assert run.stdout.splitlines()[0] == expected


def test_an_mpi_that_is_linked_into_the_program_is_refused(dryfly: Dryfly, tmp_path: Path) -> None:
    program = tmp_path / "private_mpi"
    subprocess.run(["gcc", "-Wall", "-Werror", CHECK / "private_mpi.c", "-o", program], check=True)
    for library in ("mpich", "openmpi"):
        run = dryfly(*_JOB, "--mpi", library, "--", program)
        assert run.exit_status == 2, run.stderr
        assert re.search(r"rank \d on t\d has begun an MPI that dryfly does not see", run.stderr)
        assert "real time\n" not in run.stdout


def test_an_mpi_that_is_told_to_use_another_network_is_refused(dryfly: Dryfly, script: Path) -> None:
    settings = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"}
    run = dryfly(*_JOB, "--mpi", "openmpi", "--", script, "libmpi.so.40", environment=settings)
    assert run.exit_status == 2, run.stderr
    assert "has begun on another network than the simulated one" in run.stderr


def test_a_number_that_has_changed_its_meaning_is_refused(dryfly: Dryfly, tmp_path: Path) -> None:
    """4 for MPI_Comm_split_type in a program of an MPICH before 4.2, whose library is called libmpich here."""
    library = mpi.select("mpich")
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    (tmp_path / "split.c").write_text(_SPLITS)
    (tmp_path / "old.c").write_text("".join(f"int MPI_{name};\n" for name in ("Init", "Comm_split_type", "Finalize")))
    old, new = tmp_path / "old", tmp_path / "new"
    soname = "libmpich.so.12"
    subprocess.run(["gcc", "-shared", "old.c", f"-Wl,-soname,{soname}", "-o", soname], check=True, cwd=tmp_path)
    words = [f"-I{library.prefix}/include", "split.c", "-L.", f"-l:{soname}", "-o", old]
    subprocess.run(["gcc", *words], check=True, cwd=tmp_path)
    subprocess.run([wrapper, "split.c", "-o", new], check=True, cwd=tmp_path)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", old)
    assert run.exit_status == 2, run.stderr
    assert (
        "old calls MPI_Comm_split_type with 4, which is MPIX_COMM_TYPE_NEIGHBORHOOD in the MPICH before" in run.stderr
    )
    dryfly(*_JOB, "--mpi", "mpich", "--", new).succeeded()


def _module(folder: Path, family: str) -> Path:
    """Without a path to its MPI, as a wheel has one."""
    (folder / "module.c").write_text(
        "int MPI_Initialized(int*);\nint ask(int* answer) { return MPI_Initialized(answer); }\n"
    )
    library = mpi.select(family).libmpi
    subprocess.run(["gcc", "-shared", "-fPIC", "module.c", library, "-o", "module"], check=True, cwd=folder)
    return folder / "module"


def _require_absent(name: str) -> None:
    """A rank would load the system's."""
    if loading.find(name, ()) is not None:
        pytest.skip(f"this computer has a {name} of its own")


# Names with dashes, for by an argument that names a library its family is taken.
@pytest.mark.parametrize(
    ("family", "asked", "other", "other_name"),
    [
        ("mpich", "libmpi.so.40", "openmpi", "Open MPI"),
        ("openmpi", "libmpi.so.12", "mpich", "MPICH"),
        ("openmpi", "libmpich.so.12", "mpich", "MPICH"),
        ("mpich", "", "openmpi", "Open MPI"),
        ("openmpi", "", "mpich", "MPICH"),
    ],
)
def test_a_program_that_finds_only_the_other_family_missing_is_told_which_to_take(
    dryfly: Dryfly, tmp_path: Path, family: str, asked: str, other: str, other_name: str
) -> None:
    script = tmp_path / "tries.py"
    script.write_text(_TRIES)
    opens = asked.replace(".", "-") if asked else str(_module(tmp_path, other))
    name = asked or Path(mpi.select(other).libmpi).name
    _require_absent(name)
    run = dryfly(*_JOB, "--mpi", family, "--", script, opens)
    assert run.exit_status == 1, run.stderr
    says = (
        f"has asked for {name}, which is {other_name}'s, and found no MPI: this run is on {mpi.select(family).name}, "
    )
    assert run.stderr.count(f"{says}so say --mpi {other}\n") == 1, run.stderr
    assert f"{name}: cannot open shared object file" in run.stderr


@pytest.mark.parametrize(("family", "own"), [("mpich", "libmpi-so-12"), ("openmpi", "libmpi-so-40")])
def test_a_program_that_tries_one_name_after_the_other_hears_nothing(
    dryfly: Dryfly, tmp_path: Path, family: str, own: str
) -> None:
    script = tmp_path / "tries.py"
    script.write_text(_TRIES)
    names = sorted(["libmpi-so-12", "libmpi-so-40"], key=lambda name: name == own)
    _require_absent(names[0].replace("-", "."))
    run = dryfly(*_JOB, "--mpi", family, "--", script, *names).succeeded()
    assert "has asked for" not in run.stderr


# What it opens is not in its text, where it would be found before the start.
_LOADS = """\
import ctypes, os, sys
print("read", sys.stdin.read(), flush=True)
module = ctypes.CDLL(os.environ["MODULE"])
if os.environ["PLAIN"]:
    ctypes.CDLL("libmpi.so", mode=ctypes.RTLD_GLOBAL)
sys.exit(module.begin())
"""


def _loads(folder: Path, family: str, *, plain: bool) -> tuple[Path, dict[str, str]]:
    """A script that loads a module of a family, and maybe libmpi.so as well, with the environment for it."""
    (folder / "module.c").write_text(
        "int MPI_Init(int*, char***);\nint MPI_Finalize(void);\n"
        "int begin(void) { return MPI_Init(0, 0) + MPI_Finalize(); }\n"
    )
    library = mpi.select(family)
    subprocess.run(["gcc", "-shared", "-fPIC", "module.c", library.libmpi, "-o", "module"], check=True, cwd=folder)
    (folder / "loads.py").write_text(_LOADS)
    folders = ":".join(library.library_folders)
    there = {"MODULE": str(folder / "module"), "PLAIN": "1" if plain else "", "LD_LIBRARY_PATH": folders}
    return folder / "loads.py", there


@pytest.mark.parametrize("plain", [False, True])
def test_a_module_of_the_other_family_than_was_asked_for_is_refused(
    dryfly: Dryfly, tmp_path: Path, plain: bool
) -> None:
    script, environment = _loads(tmp_path, "openmpi", plain=plain)
    run = dryfly(*_JOB, "--mpi", "mpich", "--", script, environment=environment)
    assert run.exit_status == 2, run.stderr
    says = rf"dryfly: \S+ uses Open MPI and cannot run on {re.escape(mpi.select('mpich').name)}: say --mpi openmpi\n"
    assert len(re.findall(says, run.stderr)) == 1, run.stderr
    assert "calls the MPI library past dryfly" not in run.stderr


@pytest.mark.parametrize("plain", [False, True])
def test_a_run_whose_program_names_another_family_only_in_mpi_init_starts_again_with_that(
    dryfly: Dryfly, tmp_path: Path, plain: bool
) -> None:
    script, environment = _loads(tmp_path, "openmpi", plain=plain)
    run = dryfly(*_JOB, "--", script, environment=environment).succeeded()
    assert [Path(path).parent for path in run.results["mpi"]["libmpi"]] == [Path(mpi.select("openmpi").libmpi).parent]
    says = (
        rf"dryfly: \S+ uses Open MPI and cannot run on {re.escape(mpi.select(None).name)}; no --mpi was given, so the "
    )
    assert len(re.findall(says, run.stderr)) == 1, run.stderr
    assert "say --mpi" not in run.stderr


def test_a_second_start_reads_the_same_standard_input(tmp_path: Path) -> None:
    script, environment = _loads(tmp_path, "openmpi", plain=False)
    (tmp_path / "input").write_text("the first line\nand the rest")
    command = [sys.executable, "-m", "dryfly", *_JOB, "--", script]
    with (tmp_path / "input").open("rb", buffering=0) as source:
        assert source.readline()
        run = subprocess.run(
            command, stdin=source, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
        )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("read and the rest\n") == 2


def test_without_a_second_start_the_program_is_told_which_to_take(tmp_path: Path) -> None:
    """What was read from a pipe cannot be read again."""
    script, environment = _loads(tmp_path, "openmpi", plain=False)
    command = [sys.executable, "-m", "dryfly", *_JOB, "--", script]
    run = subprocess.run(
        command, input="piped", env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 2, run.stderr
    assert run.stderr.count("uses Open MPI and cannot run on mpich-") == 1
    assert run.stderr.count(": say --mpi openmpi\n") == 1
