"""Programs of a system's own MPI: which names are added to a library, and what is refused before the start."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.mpi import elf, libraries, loading, stubs, system
from dryfly.mpi.libraries import MpiLibrary

Compile = Callable[..., Path]


class Box:
    """A library of dryfly's, and a system beside it with a program on another release of it."""

    def __init__(self, compile_c: Compile, folder: Path, family: str, code: str, inner: str = "") -> None:
        self.compile_c, self.folder = compile_c, folder
        self.soname = "libmpi.so.12" if family == "mpich" else "libmpi.so.40"
        self.lib, self.usr = folder / "lib", folder / "usr"
        self.lib.mkdir()
        self.usr.mkdir()
        self.shared(code, self.soname, into=self.lib)
        if family == "openmpi":
            self.shared(inner or "int opal_inner;\n", "libopen-pal.so.80", into=self.lib)
        self.mpi = MpiLibrary(
            name="mine-5", family=family, version="5", prefix=str(folder), libmpi=str(self.lib / self.soname),
            libfabric=str(self.lib / "libfabric.so.1"),
        )  # fmt: skip

    def shared(self, code: str, name: str, *needed: str, into: Path | None = None, flags: tuple[str, ...] = ()) -> Path:
        words = ("-shared", "-fPIC", "-Wl,--no-as-needed", f"-Wl,-soname,{name}", f"-L{self.usr}", *flags)
        made = self.compile_c(code, *words, *(f"-l:{each}" for each in needed), name=name)
        return made.rename((into or self.usr) / name)

    def program(self, code: str, *needed: str, flags: tuple[str, ...] = ()) -> Path:
        words = ("-Wl,--no-as-needed", f"-L{self.usr}", *flags, "-Wl,--allow-shlib-undefined")
        return self.compile_c(code, *words, *(f"-l:{each}" for each in needed), name="program")

    def additions(self, program: Path) -> system.Additions:
        return system.additions(program, system.linked(program), self.mpi)


@pytest.fixture
def box(compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Box]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "usr"))
    monkeypatch.setattr(loading, "_cached", dict)  # whatever MPI is installed here
    monkeypatch.setattr(loading, "SYSTEM_FOLDERS", ())
    return lambda family, code, inner="": Box(compile_c, tmp_path, family, code, inner)


def test_a_tool_of_open_mpi_5_runs_with_that_library_and_is_refused_on_release_4(box: Callable[..., Box]) -> None:
    """As ompi_info, which is linked against the library's inside by its name in release 5."""
    inner = "int opal_show(void) { return 0; }\n"
    here = box("openmpi", "int ompi_show(void) { return 0; }\n", inner)
    here.shared(inner, "libopen-pal.so.80")
    here.shared("int ompi_show(void) { return 0; }\n", "libmpi.so.40")
    code = "int opal_show(void); int ompi_show(void); int main(void) { return opal_show() + ompi_show(); }\n"
    tool = here.program(code, "libmpi.so.40", "libopen-pal.so.80")
    assert here.additions(tool).aliases == ()
    for folder in (here.lib, here.usr):
        (folder / "libopen-pal.so.80").unlink()
    with pytest.raises(UserError, match=r"is linked against libopen-pal\.so\.80 .*, which mine-5 does not have"):
        here.additions(tool)


def test_a_program_of_debians_mpich_runs_on_the_wheels(box: Callable[..., Box]) -> None:
    """By its own names, in a process: the program calls one function of the library, and one that only says so."""
    here = box("mpich", "int PMPI_Send(void) { return 0; }\n")
    here.shared("int PMPI_Send(void) { return 9; }\nint PMPIX_Old(void) { return 9; }\n", "libmpich.so.12")
    code = "int PMPIX_Old(void); int PMPI_Send(void);\n"
    code += "int mpi_send_(void) { return PMPI_Send(); } int mpix_old_(void) { return PMPIX_Old(); }\n"
    here.shared(code, "libmpichfort.so.12", "libmpich.so.12", flags=("-Wl,-z,now",))
    path = here.program(
        "int mpi_send_(void); int main(void) { return mpi_send_(); }\n", "libmpichfort.so.12", "libmpich.so.12"
    )
    given = here.additions(path)
    assert given.aliases == (("libmpich.so.12", "libmpi.so.12"),)
    assert given.missing == ("PMPIX_Old",)
    assert here.additions(path) == given
    assert given.folder is not None
    assert given.stand_ins is not None
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{here.lib}:{given.folder}:{here.usr}"}
    without = subprocess.run([path], env=environment, check=False, capture_output=True, text=True)
    assert without.returncode == 127
    assert "PMPIX_Old" in without.stderr
    ended = subprocess.run([path], env={**environment, "LD_PRELOAD": str(given.stand_ins)}, check=False)
    assert ended.returncode == 0


def test_a_name_that_comes_from_the_folder_of_fortran_is_told_as_one_that_was_added(box: Callable[..., Box]) -> None:
    here = box("mpich", "int PMPI_Send(void) { return 0; }\n")
    binding = "int PMPI_Send(void); int mpi_send_(void) { return PMPI_Send(); }\n"
    here.shared("int PMPI_Send(void) { return 9; }\n", "libmpich.so.12")
    here.shared(binding, "libmpichfort.so.12", "libmpich.so.12")
    code = "int mpi_send_(void); int PMPI_Send(void); int main(void) { return mpi_send_() + PMPI_Send(); }\n"
    path = here.program(code, "libmpichfort.so.12", "libmpich.so.12")
    assert here.additions(path).aliases == (("libmpich.so.12", "libmpi.so.12"),)
    added = here.mpi.fortran / "lib"
    added.mkdir(parents=True)
    here.shared(binding, "libmpifort.so.12", "libmpich.so.12", into=added)
    (added / "libmpichfort.so.12").symlink_to("libmpifort.so.12")
    (added / "libmpich.so.12").symlink_to(here.mpi.libmpi)
    given = here.additions(path)
    assert given.aliases == (("libmpichfort.so.12", "libmpifort.so.12"), ("libmpich.so.12", "libmpi.so.12"))


def test_a_launcher_of_open_mpi_4_is_loaded_in_a_rank_of_open_mpi_5(
    box: Callable[..., Box], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the preload can say what it is. It asks for a function, for its address, and for data."""
    here = box("openmpi", "int MPI_Init(void) { return 0; }\n")
    code = "int orte_go(void) { return 0; } void orte_receive(void) {} int orte_flag; int opal_inner;\n"
    here.shared(code, "libopen-rte.so.40")
    code = "extern int orte_go(void), orte_flag; void orte_receive(void); void (*receive)(void) = orte_receive;\n"
    code += "int main(int count, char** words) { return count > 1 ? orte_go() : orte_flag; }\n"
    launcher = here.program(code, "libopen-rte.so.40").rename(here.folder / "orterun")
    launcher.chmod(0o755)
    here.shared("int MPI_Init(void) { return 9; }\n", "libmpi.so.40")
    program = here.program("int MPI_Init(void); int main(void) { return MPI_Init(); }\n", "libmpi.so.40")
    without = here.additions(program)
    monkeypatch.setenv("PATH", f"{here.folder}:{os.environ['PATH']}")
    given = here.additions(program)
    assert given.missing == without.missing == ()
    assert given.folder is not None
    assert given.stand_ins is not None
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{here.lib}:{given.folder}"}
    fails = subprocess.run([launcher], env=environment, check=False, capture_output=True, text=True)
    assert fails.returncode == 127
    assert "symbol lookup error" in fails.stderr
    environment["LD_PRELOAD"] = str(given.stand_ins)
    runs = subprocess.run([launcher], env=environment, check=False, capture_output=True, text=True)
    assert (runs.returncode, runs.stderr) == (0, "")


def test_what_loads_mpi_itself_finds_it_by_every_name(box: Callable[..., Box]) -> None:
    """Wheels have a libmpi.so that is text for the linker. Of a script nothing else is known."""
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    (here.lib / "libmpi.so").write_text("INPUT(libmpi.so.12)\n")
    given = system.additions(None, None, here.mpi)
    assert given.folder is not None
    names = ["libmpi.so", "libmpich.so", "libmpich.so.12"]
    assert sorted(path.name for path in given.folder.iterdir()) == names
    assert {path.resolve() for path in given.folder.iterdir()} == {here.lib / "libmpi.so.12"}
    assert (given.aliases, given.missing, given.stand_ins) == ((), (), None)


def test_a_second_copy_of_open_mpis_inner_library_stays_out(box: Callable[..., Box]) -> None:
    here = box("openmpi", "int MPI_Init(void) { return 0; }\n", "int opal_argv_free(void) { return 0; }\n")
    here.shared("int opal_argv_free(void) { return 1; }\n", "libopen-pal.so.40")
    here.shared("int MPI_Init(void) { return 1; }\n", "libmpi.so.40", "libopen-pal.so.40")
    here.shared("int opal_argv_free(void); int mpi_x_(void) { return opal_argv_free(); }\n", "libmpi_mpifh.so.40",
                "libmpi.so.40", "libopen-pal.so.40")  # fmt: skip
    path = here.program("int MPI_Init(void); int main(void) { return MPI_Init(); }\n", "libmpi_mpifh.so.40",
                        "libmpi.so.40")  # fmt: skip
    assert here.additions(path).aliases == (("libopen-pal.so.40", "libopen-pal.so.80"),)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("int MPI_Gone(void); int main(void) { return MPI_Gone(); }\n", "program asks for MPI_Gone, which mine-5 does"),
        ("int mpix_old_(void); int main(void) { return mpix_old_(); }\n", "program calls MPIX_Old, which mine-5 does"),
        ("int MPIR_Inner(void); int main(void) { return MPIR_Inner(); }\n", "program asks for MPIR_Inner, which"),
        ("extern int ompi_mpi_comm_world; int main(void) { return ompi_mpi_comm_world; }\n", "with Open MPI 1.7 to"),
    ],
)
def test_a_name_that_the_library_has_not_is_refused(box: Callable[..., Box], code: str, says: str) -> None:
    here = box("mpich", "int PMPI_Send(void) { return 0; }\n")
    gone = "int MPI_Gone(void) { return 9; } int MPIR_Inner(void) { return 9; } int ompi_mpi_comm_world;\n"
    here.shared(gone + "int PMPI_Send(void) { return 9; }\nint PMPIX_Old(void) { return 9; }\n", "libmpich.so.12")
    binding = "int PMPIX_Old(void); int mpix_old_(void) { return PMPIX_Old(); }\n"
    here.shared(binding, "libmpichfort.so.12", "libmpich.so.12")
    path = here.program(code, "libmpich.so.12", "libmpichfort.so.12")
    with pytest.raises(UserError, match=says):
        here.additions(path)


def test_names_of_the_programs_own_that_look_like_mpis_are_no_reason(box: Callable[..., Box]) -> None:
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 9; }\n", "libmpich.so.12")
    here.shared("int mpi_utility_(void) { return 0; }\n", "libown.so")
    path = here.program("int mpi_utility_(void); int main(void) { return mpi_utility_(); }\n", "libmpich.so.12",
                        "libown.so")  # fmt: skip
    assert here.additions(path).aliases == (("libmpich.so.12", "libmpi.so.12"),)


def test_the_bindings_of_cxx_are_refused_where_they_are_used(box: Callable[..., Box]) -> None:
    here = box("openmpi", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 1; }\nint ompi_op_set_cxx_callback;\n", "libmpi.so.40")
    code = "extern int ompi_op_set_cxx_callback; int* inner(void) { return &ompi_op_set_cxx_callback; }\n"
    code += "int _ZN3MPI10COMM_WORLDE;\n"
    here.shared(code, "libmpi_cxx.so.40", "libmpi.so.40")
    path = here.program("extern int _ZN3MPI10COMM_WORLDE; int main(void) { return _ZN3MPI10COMM_WORLDE; }\n",
                        "libmpi_cxx.so.40", "libmpi.so.40", flags=("-fPIE", "-pie"))  # fmt: skip
    with pytest.raises(UserError, match=r"program uses the C\+\+ bindings of Open MPI .*MPI::COMM_WORLD"):
        here.additions(path)


def test_a_program_that_only_includes_the_header_of_cxx_runs(box: Callable[..., Box]) -> None:
    here = box("openmpi", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 1; }\nint ompi_op_set_cxx_callback;\n", "libmpi.so.40")
    code = "extern int ompi_op_set_cxx_callback; int* inner(void) { return &ompi_op_set_cxx_callback; }\n"
    here.shared(code + "void _ZN3MPI3Win4FreeEv(void) {}\n", "libmpi_cxx.so.40", "libmpi.so.40")
    code = "int MPI_Init(void); void _ZN3MPI3Win4FreeEv(void); void* table[] = {(void*)_ZN3MPI3Win4FreeEv};\n"
    code += "extern int ompi_op_set_cxx_callback; void* inner(void) { return &ompi_op_set_cxx_callback; }\n"
    code += "int main(int c, char** v) { (void)v; if (c > 1) _ZN3MPI3Win4FreeEv(); return MPI_Init(); }\n"
    path = here.program(code, "libmpi_cxx.so.40", "libmpi.so.40", flags=("-fPIC", "-pie"))
    given = here.additions(path)
    assert given.missing == ("_ZN3MPI3Win4FreeEv", "ompi_op_set_cxx_callback")
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{here.lib}:{given.folder}:{here.usr}"}
    assert subprocess.run([path], env=environment, check=False).returncode == 0
    ended = subprocess.run([path, "x"], env=environment, check=False, capture_output=True, text=True)
    assert ended.stderr == "dryfly: the program calls _ZN3MPI3Win4FreeEv, which mine-5 does not have\n"


def test_a_module_that_only_includes_the_header_of_cxx_is_loaded_by_a_script(box: Callable[..., Box]) -> None:
    """Nothing is known of it when the stand-ins are made. What others define too is left to them."""
    here = box("openmpi", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 1; }\nint ompi_op_set_cxx_callback;\n", "libmpi.so.40")
    code = "extern int ompi_op_set_cxx_callback; int* inner(void) { return &ompi_op_set_cxx_callback; }\n"
    code += "void _ZN3MPI3Win4FreeEv(void) {} int _ZN3MPI10COMM_WORLDE; int unrelated(void) { return 1; }\n"
    code += "__attribute__((weak)) int _ZN3MPI4Comm8Get_rankEv(void) { return 1; }\n"
    here.shared(code, "libmpi_cxx.so.40", "libmpi.so.40")
    code = "void _ZN3MPI3Win4FreeEv(void); void* table[] = {(void*)_ZN3MPI3Win4FreeEv};\n"
    code += "int MPI_Init(void); int begins(void) { return MPI_Init(); } void frees(void) { _ZN3MPI3Win4FreeEv(); }\n"
    module = here.shared(
        code, "libmodule.so", "libmpi_cxx.so.40", "libmpi.so.40", flags=("-Wl,--allow-shlib-undefined",)
    )
    given = system.additions(None, None, here.mpi)
    assert given.folder is not None
    assert given.missing == ()
    stand_ins = ctypes.CDLL(str(given.folder / "libmpi_cxx.so.40"))
    names = elf.symbols(here.usr / "libmpi_cxx.so.40").defined | {"ompi_op_set_cxx_callback"}
    assert {name for name in names if hasattr(stand_ins, name)} == {"_ZN3MPI3Win4FreeEv", "ompi_op_set_cxx_callback"}
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{here.lib}:{given.folder}:{here.usr}"}
    code = f"import ctypes; module = ctypes.CDLL('{module}'); print(module.begins(), flush=True); module.frees()"
    ended = subprocess.run([sys.executable, "-c", code], env=environment, check=False, capture_output=True, text=True)
    assert ended.stdout == "0\n", ended.stderr
    assert ended.stderr == "dryfly: the program calls _ZN3MPI3Win4FreeEv, which mine-5 does not have\n"


def test_data_that_the_program_has_a_smaller_copy_of_is_refused(box: Callable[..., Box]) -> None:
    """The linker copies the library's data into a program that is not position-independent."""
    here = box("openmpi", "char ompi_mpi_comm_world[1024] = {1};\n")
    here.shared("char ompi_mpi_comm_world[512] = {1};\n", "libmpi.so.40")
    path = here.program("extern char ompi_mpi_comm_world[]; int main(void) { return ompi_mpi_comm_world[0]; }\n",
                        "libmpi.so.40", flags=("-no-pie", "-fno-pie"))  # fmt: skip
    with pytest.raises(UserError, match="has 512 bytes for ompi_mpi_comm_world, which has 1024 in mine-5"):
        here.additions(path)


def test_versions_of_symbols_count(box: Callable[..., Box], tmp_path: Path) -> None:
    script = tmp_path / "versions"
    script.write_text("MPI_9 { global: MPI_Init; };\n")
    here = box("mpich", "int other;\n")
    flags = (f"-Wl,--version-script={script}",)
    here.shared("int MPI_Init(void) { return 9; }\n", "libmpi.so.12", flags=flags)
    path = here.program("int MPI_Init(void); int main(void) { return MPI_Init(); }\n", "libmpi.so.12")
    script.write_text("MPI_1 { global: MPI_Init; };\n")
    here.shared("int MPI_Init(void) { return 0; }\n", "libmpi.so.12", into=here.lib, flags=flags)
    with pytest.raises(UserError, match=r"asks for version MPI_9 of libmpi\.so\.12, which mine-5 does not have"):
        here.additions(path)


def test_two_mpis_in_one_process_are_named_with_what_asks_for_them(box: Callable[..., Box]) -> None:
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    here.shared("int one;\n", "libmpich.so.12")
    here.shared("int two;\n", "libmpi.so.40")
    here.shared("int three;\n", "libscale.so.2", "libmpi.so.40")
    path = here.program("int main(void) { return 0; }\n", "libmpich.so.12", "libscale.so.2")
    says = r"MPICH \(libmpich.so.12, asked for by program\) and Open MPI \(libmpi.so.40, asked for by libscale.so.2\)"
    with pytest.raises(UserError, match=says):
        _ = system.linked(path).family


def test_an_rpath_past_the_library_is_named(box: Callable[..., Box], tmp_path: Path) -> None:
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 0; }\n", "libmpi.so.12")
    here.shared("int MPI_Init(void) { return 0; }\n", "libmpich.so.12")
    rpath = ("-Wl,--disable-new-dtags", f"-Wl,-rpath,{tmp_path / 'usr'}")
    here.shared("int inner;\n", "libinner.so", "libmpich.so.12", flags=rpath)
    path = here.program("int main(void) { return 0; }\n", "libmpi.so.12", "libinner.so")
    with pytest.raises(UserError, match=r"two libraries of MPI in one process: .*libmpich.so.12 \(asked for by libinn"):
        here.additions(path)


def test_an_rpath_to_another_library_of_the_name_is_refused(box: Callable[..., Box], tmp_path: Path) -> None:
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 9; }\n", "libmpi.so.12")
    rpath = ("-Wl,--disable-new-dtags", f"-Wl,-rpath,{tmp_path / 'usr'}")
    path = here.program("int MPI_Init(void); int main(void) { return MPI_Init(); }\n", "libmpi.so.12", flags=rpath)
    with pytest.raises(UserError, match=r"would load .*/usr/libmpi.so.12 \(asked for by program\) in place of mine-5"):
        here.additions(path)


def test_a_name_that_no_file_of_the_library_has_is_refused(box: Callable[..., Box]) -> None:
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    here.shared("int MPI_Init(void) { return 9; }\n", "libmpi_abi.so.0")
    path = here.program("int MPI_Init(void); int main(void) { return MPI_Init(); }\n", "libmpi_abi.so.0")
    with pytest.raises(UserError, match=r"linked against libmpi_abi.so.0 \(by program\), which mine-5 does not have$"):
        here.additions(path)
    (Path(here.mpi.libmpi).parent / "libmpi_abi.so.1").touch()
    with pytest.raises(UserError, match=r"mine-5 does not have; it has libmpi_abi.so.1, which the program would have"):
        here.additions(path)


def test_of_an_old_mpich_is_what_was_built_with_one(box: Callable[..., Box]) -> None:
    """By the library that the program was linked against, and where that is not here by its name."""
    here = box("mpich", "int MPI_Init(void) { return 0; }\n")
    code = "int MPI_Init(void); int main(void) { return MPI_Init(); }\n"
    old = here.shared("int MPI_Init(void) { return 9; }\n", "libmpich.so.12")
    path = here.program(code, "libmpich.so.12")
    assert here.additions(path).of_old_mpich
    old.unlink()
    assert here.additions(path).of_old_mpich
    here.shared("int MPI_Init(void) { return 9; } int MPI_Get_hw_resource_info(void) { return 0; }\n", old.name)
    elf._symbols_once.cache_clear()
    assert not here.additions(path).of_old_mpich


def test_the_loaders_order_is_followed(compile_c: Compile, tmp_path: Path) -> None:
    """RPATH before LD_LIBRARY_PATH before RUNPATH, and no RPATH where there is a RUNPATH."""
    for place in ("rpath", "path", "runpath"):
        (tmp_path / place).mkdir()
        compile_c("int f;\n", "-shared", "-fPIC", "-Wl,-soname,libf.so", name="libf").rename(
            tmp_path / place / "libf.so"
        )
    for tags, here, expected in (
        ("--disable-new-dtags", "rpath", "rpath"),
        ("--enable-new-dtags", "runpath", "path"),
    ):
        program = compile_c(
            "extern int f; int main(void) { return f; }\n", f"-L{tmp_path / here}", "-l:libf.so",
            f"-Wl,{tags},-rpath,{tmp_path / here}", name=here + ".program",
        )  # fmt: skip
        found = {each.name: each for each in loading.closure(program, (tmp_path / "path",))}
        assert found["libf.so"].path == tmp_path / expected / "libf.so"
        assert found["libf.so"].by == program.name
        real = subprocess.run(
            ["ldd", program], env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "path")}, check=True,
            capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert f"libf.so => {tmp_path / expected / 'libf.so'}" in real


def test_the_systems_cache_is_read_as_ldconfig_prints_it() -> None:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
    first: dict[str, str] = {}
    for name, path in re.findall(r"^\t(\S+) \(libc6,(?:x86-64|AArch64)\) => (\S+)$", listed, re.MULTILINE):
        first.setdefault(name, path)
    assert first
    assert loading.read_cache(Path("/etc/ld.so.cache").read_bytes()) == first
    assert loading.read_cache(b"glibc-ld.so.cache1.1" + struct.pack("<II", 1000, 0)) == {}


def test_a_stand_in_says_its_sentence_and_returns_its_status(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "libx.so"
    names = [f"PMPIX_Old_{number}" for number in range(40)]
    path.write_bytes(stubs.library("libx.so", [(name, f"{name} is not there") for name in names], status=52))
    assert elf.symbols(path).wanted == frozenset()
    loaded = ctypes.CDLL(str(path))
    assert [loaded[name](1, 2, 3) for name in names] == [52] * 40
    assert capfd.readouterr().err.splitlines() == [f"{name} is not there" for name in names]
    with pytest.raises(AttributeError):
        loaded["PMPIX_New"]


def test_a_stand_in_may_end_the_process(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_bytes(stubs.library("libx.so", [("f", "no f")], status=None))
    code = f"import ctypes; ctypes.CDLL('{tmp_path}/libx.so').f(); print('went on')"
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "no f\n")


def test_a_stand_in_for_the_other_processor_is_of_the_same_form() -> None:
    made = stubs.library("libx.so", [("f", "no f")], status=44, machine="aarch64")
    assert made[18:20] == (183).to_bytes(2, "little")
    assert b"no f\n" in made


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_the_status_is_that_of_the_familys_header(family: str) -> None:
    try:
        header = Path(libraries.select(family).prefix) / "include" / "mpi.h"
    except UserError:
        pytest.skip(f"no {family} is set up")
    found = re.search(r"MPI_ERR_UNSUPPORTED_OPERATION\s+(\d+)", header.read_text())
    assert found is not None
    assert int(found.group(1)) == system._UNSUPPORTED_OPERATION[family]
