"""What PROGRAM may be: tried on real files, compiled here."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.case import program
from dryfly.case.program import Program
from dryfly.mpi import system
from dryfly.mpi.libraries import MpiLibrary

HELLO = "int main(void) { return 0; }\n"
MPI = MpiLibrary(name="none", family="mpich", version="", prefix="/nonexistent", libmpi="", libfabric="")
Compile = Callable[..., Path]


def prepare(name: str | Path, folder: Path) -> Program:
    return program.prepare(str(name), ("-x", "1"), mpi=MPI, build_folder=folder)


def test_a_dynamic_program_is_started_as_it_is(compile_c: Compile, tmp_path: Path) -> None:
    path = compile_c(HELLO)
    prepared = prepare(path, tmp_path)
    assert prepared.command == (str(path), "-x", "1")
    assert prepared.kind == "not linked against MPI: one that is loaded later is checked then"


def test_a_tool_of_the_library_is_found_without_path_and_one_on_path_comes_first(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("bin", "path"):
        (tmp_path / folder).mkdir()
    tool = compile_c(HELLO, name="its_info").rename(tmp_path / "bin" / "its_info")
    library = dataclasses.replace(MPI, prefix=str(tmp_path))
    prepared = program.prepare("its_info", ("-x",), mpi=library, build_folder=tmp_path)
    assert prepared.command == (str(tool), "-x")
    with pytest.raises(UserError, match='program "its_info" is not found on PATH'):
        prepare("its_info", tmp_path)
    other = shutil.copy(tool, tmp_path / "path" / "its_info")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    assert program.prepare("its_info", (), mpi=library, build_folder=tmp_path).command == (str(other),)


def fake_mpi(compile_c: Compile, tmp_path: Path, soname: str) -> Path:
    compile_c("int fake;\n", "-shared", "-fPIC", f"-Wl,-soname,{soname}", name=soname)
    return compile_c(
        "extern int fake;\n" + "int main(void) { return fake; }\n", f"-L{tmp_path}", f"-l:{soname}", name="linked"
    )


def test_a_program_with_an_mpi_linked_into_it_is_refused(compile_c: Compile, tmp_path: Path) -> None:
    path = compile_c("int PMPI_Init(void) { return 0; }\nint MPI_Init(void) { return PMPI_Init(); }\n" + HELLO)
    with pytest.raises(UserError, match=r"has an MPI of its own in it \(MPI_Init is linked statically\)"):
        prepare(path, tmp_path)
    pointer = compile_c("int (*MPI_Init)(void);\n" + HELLO, name="finds_it_itself")
    assert prepare(pointer, tmp_path).kind == "not linked against MPI: one that is loaded later is checked then"


@pytest.mark.parametrize("soname", ["libmpi.so.12", "libmpi_abi.so", "libmpi_abi.so.1"])
def test_programs_for_mpich_and_the_standard_abi_are_accepted(compile_c: Compile, tmp_path: Path, soname: str) -> None:
    assert soname in prepare(fake_mpi(compile_c, tmp_path, soname), tmp_path).kind


@pytest.mark.parametrize(
    ("soname", "says"),
    [
        (
            "libmpi.so.40",
            r"linked against Open MPI \(libmpi.so.40\) .* --mpi openmpi, or give the .c file to dryfly run$",
        ),
        ("libmpi_mpifh.so.40", r"linked against Open MPI \(libmpi_mpifh.so.40\) .* say --mpi openmpi$"),
        ("libmpi_cray.so.12", "libmpi_cray.so.12, which is of HPE Cray MPICH: linked with the module cray-mpich-abi"),
        ("libmpi_gnu_123.so.12", "libmpi_gnu_123.so.12, which is of HPE Cray MPICH"),
        ("libmpi.so.1", "libmpi.so.1, which is of an Open MPI before 4: build it with Open MPI 4 or 5, or with MPICH"),
        ("libmpi_usempif08.so.11", "libmpi_usempif08.so.11, which is of an Open MPI before 4"),
        ("libmpich_gnu_82.so.3", "libmpich_gnu_82.so.3, which is of HPE Cray MPICH: linked with the module cray-mpich"),
        ("libmpich_cray.so", "libmpich_cray.so, which is of HPE Cray MPICH"),
        ("libmpichf90_intel.so.3", "libmpichf90_intel.so.3, which is of HPE Cray MPICH"),
        (
            "libmpi_ibm.so.3",
            "libmpi_ibm.so.3, which is of IBM Spectrum MPI: build it with Open MPI 4 or 5, or with MPICH",
        ),
        ("libmpi.so", "libmpi.so, which is of HPE MPT, or of another MPI whose library's name has no number: build it"),
        ("libmpi_ilp64.so.4", "libmpi_ilp64.so.4, which is of Intel MPI alone, for integers of 64 bits in Fortran"),
        ("libmpi.so.4", "libmpi.so.4, which is of an Intel MPI before 5.0: build it with a newer one, or with MPICH"),
        ("libmpich.so.10", "libmpich.so.10, which is of MPICH before 3.1, or MVAPICH2 before 2.0"),
        ("libmpi.so.99", "libmpi.so.99, which dryfly does not know"),
    ],
)
def test_programs_for_another_mpi_are_refused_with_what_to_do(
    compile_c: Compile, tmp_path: Path, soname: str, says: str
) -> None:
    path = fake_mpi(compile_c, tmp_path, soname)
    with pytest.raises(UserError, match=says) as caught:
        prepare(path, tmp_path)
    assert "MPICH" in str(caught.value)


def test_crays_library_for_gpus_beside_libmpi_is_refused_as_what_it_is(compile_c: Compile, tmp_path: Path) -> None:
    for soname in ("libmpi.so.12", "libmpi_gtl_hsa.so.0"):
        compile_c("int fake;\n", "-shared", "-fPIC", f"-Wl,-soname,{soname}", name=soname)
    link = (f"-L{tmp_path}", "-Wl,--no-as-needed", "-l:libmpi.so.12", "-l:libmpi_gtl_hsa.so.0")
    says = r"libmpi_gtl_hsa.so.0, which is of HPE Cray MPICH: its GPU transport library \(GTL\).* without craype-accel-"
    with pytest.raises(UserError, match=says):
        prepare(compile_c(HELLO, *link), tmp_path)


@pytest.mark.parametrize("separator", [":", " "])
def test_an_mpi_that_the_user_preloads_is_refused_and_a_tool_is_not(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, separator: str
) -> None:
    """By the soname, whatever the file is called, by a name that only ranks find, and by PMPI_Init."""
    code = "int MPI_Init(void) { return 0; }\n"
    tool = compile_c(code, "-shared", "-fPIC", name="libmpi_intel_trace.so")
    named = compile_c(code, "-shared", "-fPIC", "-Wl,-soname,libmpich.so.12", name="named.so")
    unknown = compile_c(f"{code}int PMPI_Init(void) {{ return 0; }}\n", "-shared", "-fPIC", name="libother.so")
    path = compile_c(HELLO)
    for each, says in (
        (str(named), rf"LD_PRELOAD has {named} \(libmpich.so.12, which is MPICH's\), an MPI library in front of none"),
        ("libmpi.so.40", r"LD_PRELOAD has libmpi.so.40 \(libmpi.so.40, which is Open MPI's\)"),
        ("libmpi_cray.so.12", r"LD_PRELOAD has libmpi_cray.so.12 \(libmpi_cray.so.12\), an MPI library"),
        (str(unknown), rf"LD_PRELOAD has {unknown} \(libother.so\), an MPI library .* accepted are tools"),
    ):
        monkeypatch.setenv("LD_PRELOAD", separator.join((str(tool), each)))
        with pytest.raises(UserError, match=says):
            prepare(path, tmp_path)
    monkeypatch.setenv("LD_PRELOAD", separator.join((str(tool), str(tmp_path / "gone" / "libmpi.so.40"))))
    assert prepare(path, tmp_path).command[0] == str(path)


def test_a_program_that_needs_bindings_that_are_nowhere_is_refused(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("dryfly.mpi.loading._cached", dict)
    monkeypatch.setattr("dryfly.mpi.loading.SYSTEM_FOLDERS", ())
    path = fake_mpi(compile_c, tmp_path, "libmpi_mpifh.so.40")
    (tmp_path / "lib").mkdir()
    compile_c("int f;\n", "-shared", "-fPIC", name="libmpi.so.40").rename(tmp_path / "lib" / "libmpi.so.40")
    library = MpiLibrary(
        name="o", family="openmpi", version="", prefix="/p", libmpi=f"{tmp_path}/lib/libmpi.so.40", libfabric="/p/lib/f"
    )
    with pytest.raises(UserError, match=r'linked against libmpi_mpifh.so.40, .* "dryfly mpi fortran o" first'):
        program.prepare(str(path), (), mpi=library, build_folder=tmp_path)


@pytest.mark.parametrize("name", ["mpirun", "mpiexec.hydra", "orterun", "srun"])
def test_a_launcher_is_no_program(compile_c: Compile, tmp_path: Path, name: str) -> None:
    with pytest.raises(
        UserError, match=rf"{name} starts ranks itself, as dryfly run does: give it the program, and -n"
    ):
        prepare(compile_c(HELLO, name=name), tmp_path)


def test_the_family_of_a_program_is_told_by_its_library(compile_c: Compile, tmp_path: Path) -> None:
    assert program.family([str(fake_mpi(compile_c, tmp_path, "libmpi.so.40"))]) == "openmpi"
    assert program.family([str(fake_mpi(compile_c, tmp_path, "libmpi.so.12"))]) == "mpich"
    assert program.family([str(compile_c(HELLO))]) == ""
    assert program.family(["/no/such/program"]) == program.family(["script.py"]) == ""


@pytest.fixture
def named(compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH with a program of Open MPI's, `solve`, and one of MPICH's, `other`; the current one is empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, soname in (("solve", "libmpi.so.40"), ("other", "libmpi.so.12")):
        fake_mpi(compile_c, tmp_path, soname).rename(folder / name)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


@pytest.mark.parametrize(
    ("text", "command", "family"),
    [
        ("", ("env", "FOO=1", "solve", "-x"), "openmpi"),
        ("", ("bash", "-c", "ulimit -s unlimited && FOO=1 solve x | tee out"), "openmpi"),
        ('#!/bin/sh\n# not other\nexec solve "$@"\n', ("./run.sh",), "openmpi"),
        ('#!/bin/sh\nBIN={bin}\n"$BIN/solve" x\n', ("./run.sh",), "openmpi"),
        ("#!/bin/sh\nother x\n", ("bash", "run.sh"), "mpich"),
        ("#!/bin/sh\nsolve x; other y\n", ("./run.sh",), ""),
        ('#!/bin/sh\nexec "$1" it\'s\n', ("./run.sh", "other"), "mpich"),
        ("#!/bin/sh\necho nothing\n", ("./run.sh",), ""),
    ],
)
def test_the_family_is_that_of_the_program_behind_a_wrapper(
    named: Path, text: str, command: tuple[str, ...], family: str
) -> None:
    Path("run.sh").write_text(text.replace("{bin}", str(named)))
    Path("run.sh").chmod(0o755)
    assert program.family(command) == family


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("import solver\n", "openmpi"),
        ("from solver.parts import x\n", "openmpi"),
        ("import os, re\n", ""),
        ("import ctypes\nx = ctypes.CDLL('/usr/lib/libmpich.so.12')\n", "mpich"),
        ("import subprocess\nsubprocess.run(['solve', 'x'])\n", "openmpi"),
    ],
)
@pytest.mark.usefixtures("named")
def test_the_family_of_a_script_of_pythons_is_that_of_what_it_imports(
    compile_c: Compile, tmp_path: Path, text: str, family: str
) -> None:
    Path("solver").mkdir()
    link = (f"-L{tmp_path}", "-shared", "-fPIC", "-Wl,--no-as-needed", "-l:libmpi.so.40")
    compile_c("int f;\n", *link, name="_solver.so").rename("solver/_solver.so")
    Path("job.py").write_text(text)
    assert program.family(["job.py"]) == program.family([sys.executable, "job.py"]) == family


@pytest.mark.usefixtures("named")
def test_a_library_that_a_wrapper_is_given_as_an_argument_tells_the_family() -> None:
    Path("opens.py").write_text("import ctypes, sys\nctypes.CDLL(sys.argv[1])\n")
    command = [sys.executable, "opens.py"]
    assert program.family(command) == ""
    assert program.family([*command, "libmpi.so.40"]) == "openmpi"
    assert program.family([*command, "/usr/lib/libmpi.so.12"]) == "mpich"
    assert program.family([*command, "libmpi.so.12", "libmpi.so.40"]) == ""


def test_the_mpi_of_a_library_that_the_program_brings_along_counts(compile_c: Compile, tmp_path: Path) -> None:
    compile_c("int fake;\n", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40", name="libmpi.so.40")
    compile_c(
        "extern int fake; int inner(void) { return fake; }\n",
        "-shared", "-fPIC", "-Wl,-soname,libinner.so", f"-L{tmp_path}", "-l:libmpi.so.40", name="libinner.so",
    )  # fmt: skip
    path = compile_c(
        "int inner(void); int main(void) { return inner(); }\n",
        f"-L{tmp_path}", "-l:libinner.so", "-Wl,-rpath,$ORIGIN", "-Wl,--unresolved-symbols=ignore-in-shared-libs",
    )  # fmt: skip
    linked = system.linked(path)
    assert linked.names == ["libmpi.so.40"]
    assert linked.parts[0].by == "libinner.so"
    with pytest.raises(UserError, match=r"program \(libinner.so\) is linked against Open MPI \(libmpi.so.40\)"):
        prepare(path, tmp_path)


def test_static_programs_are_refused(compile_c: Compile, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="statically linked"):
        prepare(compile_c(HELLO, "-static"), tmp_path)


def test_setuid_programs_are_refused(compile_c: Compile, tmp_path: Path) -> None:
    path = compile_c(HELLO)
    path.chmod(0o4755)
    with pytest.raises(UserError, match="setuid"):
        prepare(path, tmp_path)


def test_go_programs_are_refused(compile_c: Compile, tmp_path: Path) -> None:
    # Go's linker marks its programs with a note of this name.
    mark = '__attribute__((section(".note.go.buildid"), used)) static const char id[] = "go";\n'
    with pytest.raises(UserError, match="Go program"):
        prepare(compile_c(mark + HELLO), tmp_path)


def test_damaged_and_foreign_programs_are_refused(compile_c: Compile, tmp_path: Path) -> None:
    path = compile_c(HELLO)
    content = bytearray(path.read_bytes())
    content[18:20] = (0x15).to_bytes(2, "little")  # e_machine: EM_PPC64
    path.write_bytes(content)
    with pytest.raises(UserError, match="another kind of processor"):
        prepare(path, tmp_path)
    path.write_bytes(content[:40])
    with pytest.raises(UserError, match="damaged"):
        prepare(path, tmp_path)


def test_scripts_run_by_their_interpreter_and_python_files_that_name_none_by_this_python(tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    with pytest.raises(UserError, match="not executable"):
        prepare(script, tmp_path)
    script.chmod(0o755)
    assert prepare(script, tmp_path).command[0] == str(script)
    script.write_text("#!/no/such/shell\n", encoding="utf-8")
    with pytest.raises(UserError, match="/no/such/shell does not exist"):
        prepare(script, tmp_path)
    script.write_text("echo\n", encoding="utf-8")
    with pytest.raises(UserError, match="neither an ELF program nor a script"):
        prepare(script, tmp_path)
    python = tmp_path / "job.py"
    python.write_text("print()\n", encoding="utf-8")
    this = (sys.executable, str(python), "-x", "1")
    assert prepare(python, tmp_path).command == this
    python.chmod(0o755)
    assert prepare(python, tmp_path).command == this
    for interpreter in ("/usr/bin/env python3", "/bin/sh -u"):
        python.write_text(f"#!{interpreter}\nprint()\n", encoding="utf-8")
        prepared = prepare(python, tmp_path)
        assert prepared.command == (str(python), "-x", "1")
        assert prepared.kind.startswith(f"a script for {interpreter.split()[0]}: ")
    python.write_text("#!/no/such/python\nprint()\n", encoding="utf-8")
    with pytest.raises(UserError, match="its interpreter /no/such/python does not exist"):
        prepare(python, tmp_path)
    for first, sentence in (
        (b"#!/bin/sh\r\n", "its first line ends with a carriage return"),
        (b"#! \n", "its first line names no interpreter"),
        (b"#!/usr/bin/env python0.1\n", "its interpreter python0.1 is not on PATH"),
        (b"#!/usr/bin/env -S A=1 python0.1 -u\n", "its interpreter python0.1 is not on PATH"),
    ):
        python.write_bytes(first)
        with pytest.raises(UserError, match=sentence):
            prepare(python, tmp_path)
    python.write_text("#!/bin/sh # it's quoted nowhere\n", encoding="utf-8")
    assert prepare(python, tmp_path).command == (str(python), "-x", "1")
    python.chmod(0o644)
    assert prepare(python, tmp_path).command == this


def test_a_source_file_is_compiled_with_the_wrapper_of_the_chosen_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    prefix = tmp_path / "mpi"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "mpicc").symlink_to(str(shutil.which("cc")))
    mpi = MpiLibrary(name="mine", family="mpich", version="", prefix=str(prefix), libmpi="", libfabric="")
    source = tmp_path / "hello.c"
    source.write_text(HELLO, encoding="utf-8")
    built = tmp_path / "built"
    built.mkdir()
    prepared = program.prepare(str(source), (), mpi=mpi, build_folder=built)
    assert Path(prepared.command[0]).name == "hello"
    assert os.access(prepared.command[0], os.X_OK)
    source.write_text("int main(void) {", encoding="utf-8")
    with pytest.raises(UserError, match=r"hello.c does not compile with mpicc of mine"):
        program.prepare(str(source), (), mpi=mpi, build_folder=built)
    with pytest.raises(UserError, match="has no mpicxx"):
        program.prepare(str(source.rename(tmp_path / "hello.cpp")), (), mpi=mpi, build_folder=built)


def test_a_source_file_is_linked_with_what_the_library_was_built_with(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another MPI on LD_LIBRARY_PATH has a part of the same name, of another release."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own, other = tmp_path / "mpi" / "lib", tmp_path / "usr"
    for folder, code in ((own, "int part(void) { return 0; }\n"), (other, "int old(void) { return 1; }\n")):
        folder.mkdir(parents=True)
        compile_c(code, "-shared", "-fPIC", "-Wl,-soname,libpart.so.2", name="libpart.so.2").rename(
            folder / "libpart.so.2"
        )
    compile_c(
        "int part(void); int MPI_Init(void) { return part(); }\n", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40",
        f"-L{own}", "-l:libpart.so.2", "-Wl,--enable-new-dtags,-rpath,$ORIGIN", name="libmpi.so.40",
    ).rename(own / "libmpi.so.40")  # fmt: skip
    wrapper = tmp_path / "mpi" / "bin" / "mpicc"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec cc "$@" -L{own} -l:libmpi.so.40\n', encoding="utf-8")
    wrapper.chmod(0o755)
    mpi = MpiLibrary(
        name="mine", family="openmpi", version="", prefix=str(tmp_path / "mpi"), libmpi=str(own / "libmpi.so.40"),
        libfabric=str(own / "libfabric.so.1"),
    )  # fmt: skip
    source = tmp_path / "hello.c"
    source.write_text("int MPI_Init(void); int main(void) { return MPI_Init(); }\n", encoding="utf-8")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(other))
    program.prepare(str(source), (), mpi=mpi, build_folder=tmp_path)
    assert os.access(tmp_path / "hello", os.X_OK)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no-such-program", "not found on PATH"),
        ("./no-such-program", "does not exist"),
        ("/tmp", "is a folder"),
        ("missing.c", "not found on PATH"),
    ],
)
def test_missing_programs_are_named(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        prepare(name, tmp_path)


# Source files.


@pytest.fixture
def compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often the library's compiler has compiled; what it keeps is in a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mpi" / "bin").mkdir(parents=True)
    wrapper, log = tmp_path / "mpi" / "bin" / "mpicc", tmp_path / "log"
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *" -E "*) ;; *) echo once >>{log} ;; esac\nexec cc $EXTRA "$@"\n')
    wrapper.chmod(0o755)
    return lambda: len(log.read_text().split()) if log.exists() else 0


def compiled(source: Path, folder: Path) -> Path:
    library = dataclasses.replace(MPI, prefix=str(folder / "mpi"))
    (folder / "build").mkdir(exist_ok=True)
    made = program.prepare(str(source), (), mpi=library, build_folder=folder / "build")
    return Path(made.command[0])


def status(path: Path) -> int:
    return subprocess.run([path], check=False).returncode


def test_a_source_file_is_compiled_once(compiles: Callable[[], int], tmp_path: Path) -> None:
    source = tmp_path / "three.c"
    source.write_text("int main(void) { return 3; }\n")
    paths = {compiled(source, tmp_path) for _ in range(3)}
    assert [status(path) for path in paths] == [3]
    assert compiles() == 1


def test_it_is_compiled_again_when_it_a_header_or_the_compilers_options_have_changed(
    compiles: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, header = tmp_path / "it.c", tmp_path / "it.h"
    source.write_text('#include "it.h"\nint main(void) { return VALUE; }\n')
    found = []
    for text in ("#define VALUE 3\n", "#define VALUE 4\n", "#ifndef VALUE\n#define VALUE 5\n#endif\n"):
        header.write_text(text)
        found.append(status(compiled(source, tmp_path)))
    monkeypatch.setenv("EXTRA", "-DVALUE=6")
    found.append(status(compiled(source, tmp_path)))
    monkeypatch.setenv("EXTRA", "-DVALUE=6 -O1")
    found.append(status(compiled(source, tmp_path)))
    source.write_text('#include "it.h"\nint main(void) { return VALUE + 1; }\n')
    found.append(status(compiled(source, tmp_path)))
    assert (found, compiles()) == ([3, 4, 5, 6, 6, 7], 6)


def test_it_is_compiled_again_for_wishes_that_the_wrapper_reads_when_it_compiles_only(
    compiles: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = tmp_path / "mpi" / "bin" / "mpicc"
    wrapper.write_text(wrapper.read_text().replace("echo once", 'set -- "$@" $OMPI_CFLAGS; echo once'))
    source = tmp_path / "it.c"
    source.write_text("#ifndef VALUE\n#define VALUE 3\n#endif\nint main(void) { return VALUE; }\n")
    found = [status(compiled(source, tmp_path))]
    for wish in ("-DVALUE=4", "-DVALUE=5", "-DVALUE=4"):
        monkeypatch.setenv("OMPI_CFLAGS", wish)
        found.append(status(compiled(source, tmp_path)))
    monkeypatch.delenv("OMPI_CFLAGS")
    found.append(status(compiled(source, tmp_path)))
    assert (found, compiles()) == ([3, 4, 5, 4, 3], 3)


def test_where_the_cache_cannot_be_written_it_is_compiled_each_time(
    compiles: Callable[[], int], tmp_path: Path
) -> None:
    source = tmp_path / "three.c"
    source.write_text("int main(void) { return 3; }\n")
    (tmp_path / "cache").write_text("a file, where a folder should be")
    assert [status(compiled(source, tmp_path)) for _ in range(2)] == [3, 3]
    assert compiles() == 2


def test_of_many_kept_programs_the_latest_stay(
    compiles: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dryfly.case.compiled._KEPT", 2)
    sources = [tmp_path / f"{number}.c" for number in range(3)]
    for number, source in enumerate(sources):
        source.write_text(f"int main(void) {{ return {number}; }}\n")
        path = compiled(source, tmp_path)
        os.utime(path.parent, (number, number))
    assert compiles() == 3
    assert status(compiled(sources[2], tmp_path)) == 2
    assert compiles() == 3
    assert status(compiled(sources[0], tmp_path)) == 0
    assert compiles() == 4
