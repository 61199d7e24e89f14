"""Input that cannot work is refused with one clear sentence and exit status 2, before anything has started."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Dryfly, Programs

_TESTBED = ("--machine", "testbed")  # 32 nodes of 128 cores


def _refused(dryfly: Dryfly, arguments: Sequence[str | Path], says: str) -> None:
    run = dryfly("run", *arguments, limit_s=20)
    assert run.exit_status == 2, run.stdout + run.stderr
    assert re.search(says, run.stderr), run.stderr
    sentences = run.stderr.strip().splitlines()
    assert len(sentences) == 1, f"more than one line was said:\n{run.stderr}"
    assert "Traceback" not in run.stderr
    assert "ok " not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--machine", "auroar"), r'unknown machine "auroar".*aurora'),
        (("--machine", "./missing.toml"), r"missing\.toml.*does not exist"),
        ((*_TESTBED, "-n", "5000"), r"4096 ranks.*5000"),  # 32 nodes x 128 cores
        ((*_TESTBED, "-N", "33"), r"32 nodes.*33"),
        ((*_TESTBED, "-N", "1", "--ppn", "129"), r"129 ranks.*128 cores"),
        ((*_TESTBED, "-n", "0"), r"-n 0.*1 or more"),
        ((*_TESTBED, "--place", "sideways"), r"sideways.*packed, spread or random"),
        ((*_TESTBED, "--mpi", "mpich-1.0"), r'unknown MPI library "mpich-1\.0"'),
        ((*_TESTBED, "--compute", "guess"), r"guess.*none, measured"),
        ((*_TESTBED, "--compute", "replay:/nowhere"), r"/nowhere"),
        ((*_TESTBED, "--set", "fabric.link.colour=1"), r"fabric\.link\.colour"),
        ((*_TESTBED, "--set", "fabric.link.rate"), r"accepted is path"),
        ((*_TESTBED, "--set", 'fabric.link.edge_flight="5 bananas"'), r"bananas"),
        ((*_TESTBED, "--set", 'fabric.link.edge_flight="5"'), r"unit"),
        ((*_TESTBED, "--set", 'fabric.extra_flight="s0 1 ns"'), r"extra_flight"),
    ],
)
def test_a_flag_that_cannot_be_used_is_refused(
    arguments: tuple[str, ...], says: str, dryfly: Dryfly, programs: Programs
) -> None:
    _refused(dryfly, [*arguments, "--", programs.check("communicators.c")], says)


@pytest.mark.parametrize("down", ["n1", "s1"])
def test_ranks_that_no_route_joins_are_refused(down: str, dryfly: Dryfly, programs: Programs) -> None:
    command = (*_TESTBED, "--quiet", "-n", "4", "--set", f"fabric.down={down}", "--", programs.check("communicators.c"))
    run = dryfly("run", *command, limit_s=20)
    assert run.exit_status == 2, run.stderr
    assert re.search(r"leaves no way from NIC n0 \(rank 0\) to NIC n\d \(rank \d\)", run.stderr), run.stderr


def test_a_missing_program_is_refused(dryfly: Dryfly) -> None:
    _refused(dryfly, [*_TESTBED, "--", "no-such-program"], r"no-such-program.*not found")
    _refused(dryfly, [*_TESTBED, "--", "/no/such/program"], r"/no/such/program.*does not exist")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("this is not TOML", r"bad\.toml.*not valid TOML.*line 1"),
        ('include = ["slingshot11"]\n[topology.group.compute]\ngroups = "many"\n', r"groups.*many"),
        ('include = ["slingshot11"]\n[fabric.lnik]\nrate = "200 Gbit/s"\n', r"fabric\.lnik"),
        ('include = ["no-such-hardware"]\n', r"no-such-hardware"),
    ],
)
def test_a_machine_file_that_cannot_be_used_is_refused(
    text: str, says: str, dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    machine = tmp_path / "bad.toml"
    machine.write_text(text)
    _refused(dryfly, ["--machine", machine, "--", programs.check("communicators.c")], says)


def _compiled(folder: Path, *arguments: str, text: str = "int main(void) { return 0; }") -> Path:
    source, program = folder / "tiny.c", folder / "tiny"
    source.write_text(text)
    subprocess.run(["cc", str(source), "-o", str(program), *arguments], check=True, capture_output=True)
    return program


@pytest.mark.parametrize(
    ("soname", "says"), [("libmpi.so.40", r"Open MPI \(libmpi\.so\.40\).*MPICH"), ("libmpi.so.99", r"libmpi\.so\.99")]
)
def test_a_program_of_another_mpi_is_refused_with_advice(
    soname: str, says: str, dryfly: Dryfly, tmp_path: Path
) -> None:
    other = tmp_path / soname
    (tmp_path / "other.c").write_text("int MPI_Init(void) { return 0; }")
    subprocess.run(
        ["cc", "-shared", "-fPIC", str(tmp_path / "other.c"), f"-Wl,-soname,{soname}", "-o", str(other)], check=True
    )
    program = _compiled(
        tmp_path, str(other), f"-Wl,-rpath,{tmp_path}", text="int MPI_Init(void); int main(void) { return MPI_Init(); }"
    )
    _refused(dryfly, [*_TESTBED, "--mpi", "mpich", "--", program], says)


def test_a_static_program_is_refused(dryfly: Dryfly, tmp_path: Path) -> None:
    _refused(dryfly, [*_TESTBED, "--", _compiled(tmp_path, "-static")], r"statically linked")


def test_a_setuid_program_is_refused(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    program = tmp_path / "privileged"
    shutil.copy(programs.check("communicators.c"), program)
    program.chmod(program.stat().st_mode | stat.S_ISUID)
    _refused(dryfly, [*_TESTBED, "--", program], r"setuid")


@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go compiler here")
def test_a_go_program_is_refused(dryfly: Dryfly, tmp_path: Path) -> None:
    (tmp_path / "tiny.go").write_text("package main\n\nfunc main() {}\n")
    program = tmp_path / "tiny"
    subprocess.run(["go", "build", "-o", str(program), "tiny.go"], cwd=tmp_path, check=True, capture_output=True)
    _refused(dryfly, [*_TESTBED, "--", program], r"Go program")


def test_a_file_that_is_no_program_is_refused(dryfly: Dryfly, tmp_path: Path) -> None:
    program = tmp_path / "notes"
    program.write_text("just text\n")
    _refused(dryfly, [*_TESTBED, "--", program], r"not executable")
    program.chmod(0o755)
    _refused(dryfly, [*_TESTBED, "--", program], r"neither an ELF program nor a script")


def test_a_source_that_does_not_compile_is_refused(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int main(void) { return undeclared; }\n")
    run = dryfly("run", *_TESTBED, "--", source)
    assert run.exit_status == 2
    assert "undeclared" in run.stderr  # the compiler's own words
    assert "broken.c does not compile" in run.stderr
