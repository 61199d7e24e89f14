"""dryfly's own solvers: compiled once for each MPI, kept in the user's cache, and started on this computer.

The BLAS is not linked: the program is told where the libraries of this Python environment are, and opens one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import cache_folder, include_folder, programs_folder
from dryfly.mpi.libraries import MpiLibrary, select

NAMES = {"dryfly-hpl": "hpl", "dryfly-mxp": "mxp"}  # and the folder of its sources
NOT_SOLVED = 4  # exit status when the numerics were skipped; programs/hpl/work.hpp
# Parts of both, in the folder of the first.
_SHARED = (
    "binding", "blas", "checkpoint", "generator", "gpu", "gpu_cuda", "gpu_level_zero", "grid", "host_memory", "matrix",
    "options", "output", "screen",
)  # fmt: skip

_FLAGS = ("-std=c++20", "-O3", "-g1")  # lines for profilers, without variables: those took a quarter of the time
_BLAS = {"mkl": re.compile(r"libmkl_rt\.so(\.\d+)*"), "scipy-openblas32": re.compile(r"libscipy_openblas.*\.so")}
_GRID = re.compile(r"(\d+)x(\d+)")


def build(name: str, *, mpi: MpiLibrary) -> Path:
    """The program for this MPI; it is compiled when there is none of these sources yet."""
    sources = sources_of(name)
    flags = (*_FLAGS, f'-DDRYFLY_BLAS_FOUND="{":".join(blas_libraries())}"')
    wrapper = mpi.wrapper("mpicxx")
    if wrapper is None:
        raise UserError(f"MPI library {mpi.name} has no mpicxx, so {name} cannot be compiled with it")
    target = _place(sources, flags, mpi) / name
    if target.is_file():
        return target
    command = [str(wrapper), *flags, f"-I{include_folder()}", *mpi.link_options]
    with _alone(target.parent), tempfile.TemporaryDirectory(dir=target.parent.parent, prefix=".build-") as work:
        if target.is_file():
            return target
        print(f"dryfly: compiling {name} for {mpi.name}, once", file=sys.stderr, flush=True)
        shared = [source for source in sources if source in _shared_sources()]
        objects = _kept_objects(_place(shared, flags, mpi) / "objects", name, shared, command)
        objects += _compile(name, [source for source in sources if source not in shared], command, Path(work))
        link = [*command, *map(str, objects), "-o", str(Path(work) / name), "-ldl"]
        _require_none(_messages(link), name, command)
        os.replace(Path(work) / name, target)  # complete, or not there
    return target


def _place(sources: list[Path], flags: tuple[str, ...], mpi: MpiLibrary) -> Path:
    """The folder for what these sources make."""
    digest = hashlib.sha256("\0".join((mpi.libmpi, *flags)).encode())
    folders = {*(source.parent for source in sources), include_folder() / "dryfly"}
    headers = {header for folder in folders for header in folder.glob("*.h*")}
    for path in sorted({*sources, *headers}):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_folder() / "programs" / f"{mpi.name}-{digest.hexdigest()[:16]}"


def _kept_objects(folder: Path, name: str, sources: list[Path], command: list[str]) -> list[Path]:
    """Of what both programs are made of; the second finds them."""
    with _alone(folder.parent), tempfile.TemporaryDirectory(dir=folder.parent.parent, prefix=".build-") as work:
        if not folder.is_dir():
            made = Path(work) / "objects"
            made.mkdir()
            _compile(name, sources, command, made)
            with contextlib.suppress(OSError):  # without locks, another one's may be there by now
                os.replace(made, folder)  # complete, or not there
        return sorted(folder.iterdir())


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time for this folder: a compilation takes half a minute of a core, and others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # not every file system has locks; without, each compiles
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sources_of(name: str) -> list[Path]:
    folder = programs_folder() / NAMES[name]
    own = {path for path in folder.glob("*.cpp") if not path.stem.endswith("_test")}
    return sorted(own | set(_shared_sources()))


def _shared_sources() -> list[Path]:
    return [programs_folder() / "hpl" / f"{part}.cpp" for part in _SHARED]


def _compile(name: str, sources: list[Path], command: list[str], work: Path) -> list[Path]:
    from concurrent.futures import ThreadPoolExecutor  # brings logging, and runs import this module

    def one(source: Path) -> str:
        return _messages([*command, "-c", str(source), "-o", str(_object(source, work))])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        _require_none("".join(pool.map(one, sources)), name, command)
    return [_object(source, work) for source in sources]


def _require_none(messages: str, name: str, command: list[str]) -> None:
    if messages:
        sys.stderr.write(messages)
        raise UserError(f"{name} does not compile with {command[0]} (its messages are above)")


def _object(source: Path, work: Path) -> Path:
    return work / f"{source.parent.name}-{source.stem}.o"


def _messages(command: list[str]) -> str:
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return (result.stderr or f"{command[0]} ended with status {result.returncode}\n") if result.returncode else ""


def blas_libraries() -> list[str]:
    """Those that pip has installed beside dryfly."""
    import importlib.metadata  # takes 30 ms, and runs import this module

    found = []
    for package, pattern in _BLAS.items():
        try:
            files = importlib.metadata.distribution(package).files or []
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = (os.path.realpath(file.locate()) for file in files if pattern.fullmatch(file.name))
        found += [path for path in paths if Path(path).exists()]
    return found


def run(name: str, arguments: tuple[str, ...], *, ranks: int | None, mpi: str | None, only_path: bool) -> int:
    library = select(mpi)
    program = build(name, mpi=library)
    if only_path:
        print(program)
        return 0
    count = _ranks(ranks, arguments, reads_data_file=name == "dryfly-hpl")
    command = [str(program), *arguments]
    if count > 1:
        launcher = library.wrapper("mpiexec")
        if launcher is None:
            raise UserError(f"MPI library {library.name} has no mpiexec, so only one rank can be started (-n 1)")
        command = [str(launcher), "-n", str(count), *_binding(library, count), *command]
    return subprocess.run(command, check=False).returncode


def _ranks(asked: int | None, arguments: tuple[str, ...], *, reads_data_file: bool = False) -> int:
    if asked is not None:
        if asked < 1:
            raise UserError(f"-n {asked}: accepted is 1 or more ranks")
        return asked
    if {"-h", "--help"} & set(arguments):
        return 1
    grid = _GRID.fullmatch((_option("--grid", arguments) or "").partition(",")[0])
    if grid is not None:
        return int(grid[1]) * int(grid[2])
    needed = None
    if reads_data_file and _option("-N", arguments) is None:
        needed = _ranks_of_data_file(Path(_option("--dat", arguments) or "HPL.dat"))
    return needed or len(os.sched_getaffinity(0))


def _option(name: str, arguments: tuple[str, ...]) -> str | None:
    """The value that the last of them gives it."""
    value = None
    for first, second in zip(arguments, (*arguments[1:], ""), strict=False):  # there may be none
        if first == name:
            value = second
        elif first.startswith(f"{name}="):
            value = first.removeprefix(f"{name}=")
    return value


def _ranks_of_data_file(path: Path) -> int | None:
    """P x Q of an HPL.dat's first grid; None where the file has none, which the program itself says."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return int(lines[10].split()[0]) * int(lines[11].split()[0])
    except (OSError, IndexError, ValueError):
        return None


def _binding(library: MpiLibrary, ranks: int) -> list[str]:
    """One core for each rank, if there are so many: a rank that wanders loses its caches."""
    return ["-bind-to", "core"] if library.family == "mpich" and ranks <= len(os.sched_getaffinity(0)) else []
