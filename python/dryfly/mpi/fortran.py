"""Fortran for an MPI library that comes without: the bindings of a distribution's library of the same family.

They are a shared library, which calls libmpi's C functions, and modules for gfortran. Copies of both, a compiler
wrapper `mpifort`, and links by which the copies find this libmpi are kept in the cache beside the library's note.
"""

from __future__ import annotations

import hashlib
import io
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.mpi import elf
from dryfly.mpi.libraries import MpiLibrary

_AT_A_TIME_S = 60.0
_MODULES = ("mpi.mod", "mpi_f08.mod")
_OURS = ("MPI", "PMPI", "QMPI", "ompi_", "opal_", "mca_")  # what such symbols begin with


@dataclass(frozen=True, kw_only=True)
class _Family:
    title: str
    libraries: tuple[tuple[str, ...], ...]  # in the order of linking; names by which each may be found
    packages: str  # of a distribution that has them
    aliases: Mapping[str, str]  # further names by which programs and bindings ask for a library: the file meant
    flags: tuple[str, ...]
    compiler: str  # the variable by which the family's own wrapper takes another


_FAMILIES = {
    "mpich": _Family(
        title="MPICH",
        libraries=(("libmpifort.so.12", "libmpichfort.so.12"),),
        packages="libmpich-dev",
        aliases={
            "libmpich.so.12": "libmpi.so.12", "libmpichfort.so.12": "libmpifort.so.12",
        },
        flags=("-fallow-argument-mismatch",),
        compiler="MPICH_FC",
    ),
    "openmpi": _Family(
        title="Open MPI",
        libraries=(
            ("libmpi_usempif08.so.40", "libmpi_usempif08-gfortran.so.40"),
            ("libmpi_usempi_ignore_tkr.so.40", "libmpi_usempi_ignore_tkr-gfortran.so.40"),
            ("libmpi_mpifh.so.40", "libmpi_mpifh-gfortran.so.40"),
        ),
        packages="libopenmpi-dev",
        aliases={},
        flags=(),
        compiler="OMPI_FC",
    ),
}  # fmt: skip


def add(library: MpiLibrary, source: Path | None) -> str:
    """Sets the bindings up and says where they are from. `source`: the prefix of an MPI with Fortran; None: what is
    installed here and fits, else packages of data/mpi/fortran.toml. Raises UserError."""
    if library.family not in _FAMILIES:
        raise UserError(
            f"MPI library {library.name} brings its own Fortran bindings, without mpif.h and modules on PyPI: compile "
            "with MPICH's mpifort (--mpi mpich), and run the program on either"
        )
    family = _FAMILIES[library.family]
    final = library.fortran
    final.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fortran-", dir=final.parent) as name:
        work = Path(name)
        if source is not None:
            found, shown = _find(source, family), str(source)
            missing = _missing(found, library)
            if missing:
                raise UserError(f"{source}: its Fortran bindings need {missing[0]}, which {library.name} does not have")
        else:
            found, shown = _installed_or_fetched(library, family, work)
        _assemble(work / "made", found, library, family)
        shutil.rmtree(final, ignore_errors=True)
        (work / "made").rename(final)
    return shown


def advice(library: MpiLibrary) -> str:
    """What a user without bindings is told."""
    if library.family not in _FAMILIES:
        return f"MPI library {library.name} has no mpifort; compile with that of MPICH, and run the program on either"
    return f'MPI library {library.name} has no Fortran bindings; run "dryfly mpi fortran {library.name}" first'


@dataclass(frozen=True, kw_only=True)
class _Found:
    libraries: tuple[Path, ...]
    folders: tuple[Path, ...]  # with mpif.h and modules


def _find(prefix: Path, family: _Family) -> _Found:
    libraries = []
    for names in family.libraries:
        places = (folder / name for name in names for folder in _library_folders(prefix))
        path = next((place for place in places if place.is_file()), None)
        if path is None:
            raise UserError(f"{prefix} has no {family.title} with Fortran: there is no {' or '.join(names)} in its lib")
        libraries.append(path)
    folders = tuple(dict.fromkeys(folder.resolve() for folder in _module_folders(prefix, family)))
    for name in ("mpif.h", *_MODULES):
        if not any((folder / name).is_file() for folder in folders):
            raise UserError(f"{prefix} has no {family.title} with Fortran for gfortran: there is no {name}")
    return _Found(libraries=tuple(libraries), folders=folders)


def _library_folders(prefix: Path) -> Iterator[Path]:
    for lib in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        yield prefix / lib
        for mpi in ("mpich", "openmpi"):
            yield prefix / lib / mpi / "lib"


def _module_folders(prefix: Path, family: _Family) -> Iterator[Path]:
    name = "mpich" if family.title == "MPICH" else "openmpi"
    places = ["include", f"include/{name}-x86_64", f"include/{name}-aarch64", f"lib64/gfortran/modules/{name}"]
    for lib in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
        places += [lib, f"{lib}/fortran/gfortran-mod-15/{name}", f"{lib}/{name}/include"]
    places += [f"include/x86_64-linux-gnu/{name}", f"include/aarch64-linux-gnu/{name}", "mod"]
    for place in places:
        if any((prefix / place / file).is_file() for file in ("mpif.h", *_MODULES)):
            yield prefix / place


def _installed_or_fetched(library: MpiLibrary, family: _Family, work: Path) -> tuple[_Found, str]:
    try:
        found = _find(Path("/usr"), family)
        if not _missing(found, library):
            return found, "/usr"
    except UserError:
        pass  # the usual case: nothing is installed
    content: dict[str, Any] = tomllib.loads((data_folder() / "mpi" / "fortran.toml").read_text(encoding="utf-8"))
    facts = content[library.family]
    unpacked = work / "packages"
    for package in facts["packages"]:
        _unpack(_fetch(package["url"], package["sha256"], library, family), unpacked)
    return _find(unpacked / "usr", family), f"Debian's packages of {family.title} {facts['version']}"


def _fetch(url: str, sha256: str, library: MpiLibrary, family: _Family) -> bytes:
    import urllib.error  # with its request it takes 15 ms to import, and runs import this module
    import urllib.request

    instead = (
        f'install an {family.title} with Fortran (Debian: {family.packages}) and run "dryfly mpi fortran '
        f'{library.name} --from PREFIX"'
    )
    try:
        with urllib.request.urlopen(url, timeout=_AT_A_TIME_S) as answer:
            content: bytes = answer.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"{url} cannot be fetched ({reason}); {instead}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{url} is not the file that dryfly knows (its SHA-256 is another); {instead}")
    return content


def _unpack(package: bytes, target: Path) -> None:
    """A Debian package is an ar archive with a tar archive named data in it."""
    import tarfile  # takes ten milliseconds, and runs import this module

    place = 8  # after its magic
    while place < len(package):
        name = package[place : place + 16].decode().rstrip(" /")
        size = int(package[place + 48 : place + 58])
        if name.startswith("data.tar"):
            content = io.BytesIO(package[place + 60 : place + 60 + size])
            with tarfile.open(fileobj=content) as archive:
                if hasattr(tarfile, "tar_filter"):  # Python 3.11.4 and newer
                    archive.extraction_filter = tarfile.tar_filter
                archive.extractall(target)
        place += 60 + size + size % 2


def _missing(found: _Found, library: MpiLibrary) -> list[str]:
    """MPI's own symbols that the bindings need and neither they nor the library have."""
    needed: set[str] = set()
    there: set[str] = set()
    for path in (*found.libraries, *_parts(library)):
        symbols = elf.symbols(path)
        there |= symbols.defined
        if path in found.libraries:
            needed |= {name for name in symbols.wanted if name.startswith(_OURS)}
    return sorted(needed - there)


def _parts(library: MpiLibrary) -> list[Path]:
    libmpi = Path(library.libmpi)
    return [libmpi, *sorted(libmpi.parent.glob("libopen-pal.so.*"))]


def _assemble(target: Path, found: _Found, library: MpiLibrary, family: _Family) -> None:
    lib, include, commands = (target / name for name in ("lib", "include", "bin"))
    for folder in (lib, include, commands):
        folder.mkdir(parents=True)
    for names, path in zip(family.libraries, found.libraries, strict=True):
        shutil.copyfile(path, lib / names[0])
        for name in names[1:]:
            (lib / name).symlink_to(names[0])
    for alias, meant in family.aliases.items():
        if not (lib / alias).is_symlink():
            (lib / alias).symlink_to(meant if (lib / meant).exists() else library.libmpi)
    for folder in found.folders:
        for path in sorted(folder.iterdir()):
            if path.suffix == ".mod" or path.name.startswith("mpif") or path.name == "mpiof.h":
                shutil.copyfile(path, include / path.name)
    _write_wrapper(commands, [names[0] for names in family.libraries], library, family)


def _write_wrapper(folder: Path, names: Sequence[str], library: MpiLibrary, family: _Family) -> None:
    lib, own = str(Path(library.libmpi).parent), str(library.fortran / "lib")
    flags = [*family.flags, f"-I{library.fortran / 'include'}", f"-L{own}", f"-L{lib}"]
    flags += [f"-Wl,-rpath,{own}", f"-Wl,-rpath,{lib}", "-Wl,--enable-new-dtags", "-Wl,--allow-shlib-undefined"]
    flags += [*(f"-l:{name}" for name in names), f"-l:{Path(library.libmpi).name}"]
    shown = shlex.join(flags)
    script = (
        "#!/bin/sh\n"
        f"# gfortran with the bindings of {family.title}, as the family's own mpifort; -show says what it would run.\n"
        f'compiler="${{{family.compiler}:-gfortran}}"\n'
        'case "$1" in\n'
        f'  -show | --showme) shift; echo "$compiler" "$@" {shlex.quote(shown)}; exit ;;\n'
        "esac\n"
        f'exec "$compiler" "$@" {shown}\n'
    )
    for name in ("mpifort", "mpif90", "mpif77"):
        path = folder / name
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
