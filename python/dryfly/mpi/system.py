"""What a program that was built with a system's own MPI needs to run on a library of dryfly's, of the same family.

Distributions give parts of MPI other names than the wheels do, and have bindings of Fortran of another release. So a
folder of links is put on each rank's LD_LIBRARY_PATH, by which the library is found under every name of its family, by
dlopen too; and where bindings ask for functions that the library has not, a library of stand-ins (mpi/stubs.py) goes
into LD_PRELOAD. Both are kept in the cache. Before the start each name of MPI's that the program and its libraries ask
for is looked up in what will be loaded: what is missing, but for stand-ins that nobody calls, is a reason to refuse.

What the two releases have in common is theirs to promise: Open MPI's series 4 and 5 have one binary interface but for
the bindings of C++ (https://docs.open-mpi.org/en/v5.0.x/version-numbering.html), every MPICH since 3.1 has
(https://www.mpich.org/abi/). Checked here are names, versions of symbols, and sizes of data that programs copy.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from dryfly.base.errors import UserError
from dryfly.base.paths import cache_folder
from dryfly.mpi import elf, loading, others, stubs
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.loading import Loaded

TITLES = {"mpich": "MPICH", "openmpi": "Open MPI"}
_PARTS = {
    "mpich": re.compile(r"lib(mpi|mpich|pmpi)\.so\.12|libmpi_abi\.so(\.\d+)*|libmpi(ch)?(fort|cxx)\.so\.12"),
    "openmpi": re.compile(
        r"libmpi\.so\.40|libmpi_(cxx|mpifh|usempi\w*)(-gfortran)?\.so\.40|libopen-(pal|rte)\.so\.40|libopen-pal\.so\.80"
    ),
}
_CORE = re.compile(r"lib(mpi|mpich|mpi_abi)\.so[.\d]*")
_INNER = re.compile(r"libopen-pal\.so[.\d]*")
_BINDINGS = re.compile(r"libmpi(ch)?fort\.so\.12|libmpi_(mpifh|usempi\w*)(-gfortran)?\.so\.40")
_CXX = re.compile(r"libmpi(ch)?cxx\.so\.12|libmpi_cxx\.so\.40")
_ANY_MPI = re.compile(
    r"lib(mpi|mpi\+\+|mpich\w*|mpi_[a-z0-9_]+(-gfortran)?|pmpi|mpifort(_\w+)?|mpicxx|mpigf|mpi_mt|oshmem|open-pal|open-rte)"
    r"\.so(\.\d+)*"
)
_BINDINGS_BY_FAMILY = {
    "mpich": ("libmpifort.so.12", "libmpichfort.so.12"),
    "openmpi": ("libmpi_mpifh.so.40", "libmpi_usempi_ignore_tkr.so.40", "libmpi_usempif08.so.40"),
}
_CXX_BY_FAMILY = {"mpich": ("libmpicxx.so.12", "libmpichcxx.so.12"), "openmpi": ("libmpi_cxx.so.40",)}
_UNSUPPORTED_OPERATION = {"mpich": 44, "openmpi": 52}  # MPI_ERR_UNSUPPORTED_OPERATION in each family's mpi.h

# Of MPI and of the libraries' own parts, in the spellings of C, of Fortran and of C++.
_NAME_OF_MPI = re.compile(r"P?MPIX?_\w+|MPI[DIR]_\w+|(ompi|opal|orte|mca)_\w+|p?mpix?_\w+_|_Z(T[VISTv])?NK?3MPI\w+")
_FUNCTION = re.compile(r"P?MPIX?_[A-Z]\w+")
_CXX_CONSTANT = re.compile(r"_ZN3MPI\d+([A-Z][A-Z0-9_]+)E")

_OF_MPI_4_1 = "MPI_Get_hw_resource_info"  # came with MPI_COMM_TYPE_RESOURCE_GUIDED


@dataclass(frozen=True, kw_only=True)
class Additions:
    """What ranks get on top of the library."""

    folder: Path | None = None  # for LD_LIBRARY_PATH
    stand_ins: Path | None = None  # for LD_PRELOAD
    aliases: tuple[tuple[str, str], ...] = ()  # those that the program asks for, and the file that each is
    missing: tuple[str, ...] = ()  # functions that only report that the library has not got them
    of_old_mpich: bool = False  # built with an MPICH before 4.2, where a number means something else


NONE = Additions()


@dataclass(frozen=True, kw_only=True)
class LinkedMpi:
    """What MPI a program is linked against, itself or by a library of it."""

    program: str
    parts: tuple[Loaded, ...]

    @property
    def names(self) -> list[str]:
        return [part.name for part in self.parts]

    def user(self, part: Loaded) -> str:
        """The program, and the library of it that asks for the part."""
        return self.program if part.by == Path(self.program).name else f"{self.program} ({part.by})"

    @property
    def family(self) -> str:
        """Empty where there is none. Raises UserError where there are two."""
        first: dict[str, Loaded] = {}
        for part in self.parts:
            family = family_of(part.name)
            if family and (family not in first or _CORE.fullmatch(part.name)):
                first.setdefault(family, part)
        if len(first) > 1:
            (one, a), (two, b) = first.items()
            raise UserError(
                f"{self.program} would have two MPIs in one process: {TITLES[one]} ({a.name}, asked for by "
                f"{_asker(a)}) and {TITLES[two]} ({b.name}, asked for by {_asker(b)}); link all of it with one"
            )
        return next(iter(first), "")


def linked(program: Path) -> LinkedMpi:
    """As the program would be loaded without dryfly. What an MPI library itself is linked against does not count."""
    found = loading.closure(program, loading.folders_of(os.environ.get("LD_LIBRARY_PATH")))
    parts = [each for each in found[1:] if _ANY_MPI.fullmatch(each.name)]
    asked = [each for each in parts if not _ANY_MPI.fullmatch(each.by)]
    return LinkedMpi(program=str(program), parts=tuple(asked))


def additions(program: Path | None, linked_mpi: LinkedMpi | None, mpi: MpiLibrary) -> Additions:
    """`program`: an ELF file; None: a script, of which nothing is known. Raises UserError where it cannot run on the
    library."""
    if linked_mpi is not None:
        _check_names(linked_mpi, mpi)
    if not Path(mpi.libmpi).is_file():
        return NONE
    links = _links(mpi)
    folders = [Path(folder) for folder in mpi.library_folders]
    inherited = loading.folders_of(os.environ.get("LD_LIBRARY_PATH"))
    bindings = _bindings(_BINDINGS_BY_FAMILY[mpi.interface], (*folders, *inherited))
    of_cxx = _bindings(_CXX_BY_FAMILY[mpi.interface], (*folders, *inherited))
    with tempfile.TemporaryDirectory(prefix="dryfly-links-") as name:
        _make_links(Path(name), links)
        seen = loading.closure(program, (Path(name), *folders, *inherited)) if program is not None else []
        library = [each for each in loading.closure(Path(mpi.libmpi), folders) if _is_mpi(each)]
        asked = [
            (each.name, links[each.name].name)
            for each in seen
            if each.name in links and each.path == Path(name) / each.name
        ]
        asked += _aliases_of_fortran(seen, mpi)
        job = _Job(program=str(program or ""), mpi=mpi, seen=seen, library=library, bindings=bindings, of_cxx=of_cxx)
        if linked_mpi is not None and linked_mpi.parts:
            job.check()
    missing = job.missing_in_bindings()
    cxx = job.cxx()
    launcher = _wanted_by_launcher(links, job.of_library())
    folder = _kept(mpi, links, missing, job.cxx_stand_ins(cxx), launcher)
    return Additions(
        folder=folder,
        stand_ins=folder / _STAND_INS if missing or launcher else None,
        aliases=tuple(asked),
        missing=(*missing, *(name for names in cxx.values() for name in names)),
        of_old_mpich=mpi.interface == "mpich" and linked_mpi is not None and _is_of_old_mpich(linked_mpi),
    )


_STAND_INS = "libdryfly-not-there.so"
_OF_LAUNCHER = "libopen-rte.so.40"


@dataclass(frozen=True, kw_only=True)
class _Job:
    """All that would be loaded, with the library in place of the system's own."""

    program: str
    mpi: MpiLibrary
    seen: Sequence[Loaded]
    library: Sequence[Loaded]  # libmpi and its own parts
    bindings: Sequence[Path]  # that are here; a module may be linked against them without the program being so
    of_cxx: Sequence[Path]  # likewise, those of C++

    def check(self) -> None:
        self._one_of_each()
        self._nothing_absent()
        self._versions_fit()
        defined = self._defined() | {name for names in self.cxx().values() for name in names}
        for each in self._users():
            if _BINDINGS.fullmatch(each.name) or _CXX.fullmatch(each.name):
                continue
            assert each.path is not None
            symbols = elf.symbols(each.path)
            self._sizes_fit(each.path, symbols)
            wanted = {name for name in symbols.wanted if _NAME_OF_MPI.fullmatch(name)}
            missing = wanted - defined
            if missing:  # a library of the program's own may have names that look like MPI's
                missing -= {name for every in self.seen if every.path for name in elf.symbols(every.path).defined}
            self._require_all(each, sorted(missing), wanted)

    def missing_in_bindings(self) -> list[str]:
        """Functions that bindings ask for and the library has not."""
        own = {name for path in self._bindings() for name in elf.symbols(path).defined}
        there = own | self.of_library()
        wanted = {
            name for path in self._bindings() for name in elf.symbols(path).wanted if _NAME_OF_MPI.fullmatch(name)
        }
        return sorted(name for name in wanted - there if _FUNCTION.fullmatch(name))

    def _bindings(self) -> list[Path]:
        in_program = [each.path for each in self.seen if each.path is not None and _BINDINGS.fullmatch(each.name)]
        return list(dict.fromkeys(path.resolve() for path in (*in_program, *self.bindings)))

    def of_library(self) -> frozenset[str]:
        return frozenset(
            name for each in self.library if each.path is not None for name in elf.symbols(each.path).defined
        )

    def _users(self) -> list[Loaded]:
        """The program and its libraries that are linked against MPI, but the library itself."""
        own = {each.path.resolve() for each in self.library if each.path is not None}
        return [
            each
            for each in self.seen
            if each.path is not None
            and each.facts is not None
            and each.path.resolve() not in own
            and any(_ANY_MPI.fullmatch(name) for name in each.facts.needed)
        ]

    def _defined(self) -> set[str]:
        found = set(self.of_library())
        for each in self._users():
            assert each.path is not None
            found |= elf.symbols(each.path).defined
        return found

    def _one_of_each(self) -> None:
        for kind in (_CORE, _INNER):
            files: dict[Path, Loaded] = {}
            for each in (*self.seen, *self.library[1:]):
                if each.path is not None and kind.fullmatch(each.name):
                    files.setdefault(each.path.resolve(), each)
            own = Path(self.mpi.libmpi).resolve().parent
            other = next((path for path in files if kind is _CORE and path.parent != own), None)
            if other is not None and len(files) == 1:
                if not (own / files[other].name).exists() and files[other].name not in _links(self.mpi):
                    _refuse_absent(self.program, files[other], self.mpi)
                raise UserError(
                    f"{self.program} would load {other} (asked for by {_asker(files[other])}) in place of "
                    f'{self.mpi.name}, by an RPATH: say "dryfly mpi add NAME=PREFIX" for that library and --mpi NAME, '
                    "or link without RPATH"
                )
            if len(files) > 1:
                (one, a), (two, b) = list(files.items())[:2]
                raise UserError(
                    f"{self.program} would have two libraries of MPI in one process: {one} (asked for by {_asker(a)}) "
                    f"and {two} (asked for by {_asker(b)}); an RPATH may be the reason"
                )

    def _nothing_absent(self) -> None:
        for each in self.seen:
            if each.path is None and _ANY_MPI.fullmatch(each.name):
                _refuse_absent(self.program, each, self.mpi)

    def _versions_fit(self) -> None:
        there = {
            each.name: elf.symbols(each.path).versions
            for each in self.seen
            if each.path is not None and _is_mpi(each)
        }  # fmt: skip
        for each in self._users():
            assert each.path is not None
            for soname, version in elf.symbols(each.path).wanted_versions:
                if there.get(soname) and version not in there[soname]:
                    raise UserError(
                        f"{each.path.name} asks for version {version} of {soname}, which {self.mpi.name} does not have"
                    )

    def _sizes_fit(self, path: Path, symbols: elf.Symbols) -> None:
        """The linker may have made copies of the library's data in the program, as large as they were then."""
        for each in self.library:
            there = elf.symbols(each.path).sizes if each.path is not None else {}
            for name in symbols.copied & there.keys():
                if there[name] > symbols.sizes[name]:
                    raise UserError(
                        f"{path.name} has {symbols.sizes[name]} bytes for {name}, which has {there[name]} in "
                        f"{self.mpi.name}: it was built with another release; build it anew"
                    )

    def _require_all(self, user: Loaded, missing: list[str], wanted: Iterable[str]) -> None:
        who = Path(user.path or user.name).name
        if missing and missing[0].startswith("ompi_") and self.mpi.interface == "mpich":
            raise UserError(
                f"{who} was built with Open MPI 1.7 to 1.10, whose library is called libmpi.so.12 as MPICH's is: build "
                "it with Open MPI 4 or 5"
            )
        if missing:
            more = f", and for {len(missing) - 1} more names" if len(missing) > 1 else ""
            raise UserError(f"{who} asks for {missing[0]}{more}, which {self.mpi.name} does not have")
        called = {_plain(name) for name in wanted}
        stood_in = [name for name in self.missing_in_bindings() if _plain(name) in called]
        if stood_in:
            raise UserError(f"{who} calls {stood_in[0].removeprefix('P')}, which {self.mpi.name} does not have")

    def cxx(self) -> dict[str, list[str]]:
        """Bindings of C++ that cannot be loaded, for they are as much of the library's insides as of its release, and
        the functions that are asked for in them. Whoever includes mpi.h in C++ asks for some. Raises UserError where
        they are really used."""
        found: dict[str, list[str]] = {}
        for each in self.seen:
            if each.path is None or not _CXX.fullmatch(each.name):
                continue
            bindings = elf.symbols(each.path)
            lacks = self._lacks(bindings)
            if lacks:
                offered = (bindings.defined | lacks) - self.of_library()
                users = [user for user in self._users() if user.path is not None and not _CXX.fullmatch(user.name)]
                found[each.name] = sorted({name for user in users for name in self._used(user, offered, bindings)})
        return found

    def cxx_stand_ins(self, used: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Those, and all functions that nothing but the bindings defines: a module that is loaded later (dlopen), as
        Python's are, may be linked against the bindings. Which of them it asks for is not known."""
        found = {name: set(names) for name, names in used.items()}
        here = {each.name: each.path for each in self.seen if each.path is not None and each.name in used}
        for name, path in ({path.name: path for path in self.of_cxx} | here).items():
            bindings = elf.symbols(path)
            lacks = self._lacks(bindings)
            if lacks:
                own = bindings.defined - bindings.weak - bindings.sizes.keys() - self.of_library()
                found.setdefault(name, set()).update({*lacks, *filter(_NAME_OF_MPI.fullmatch, own)})
        return {name: sorted(names) for name, names in found.items()}

    def _lacks(self, bindings: elf.Symbols) -> set[str]:
        """What bindings ask for and the library has not."""
        wanted = {name for name in bindings.wanted if _NAME_OF_MPI.fullmatch(name)}
        return wanted - self.of_library() - bindings.defined

    def _used(self, user: Loaded, offered: frozenset[str], bindings: elf.Symbols) -> frozenset[str]:
        assert user.path is not None
        names = elf.symbols(user.path).wanted & offered
        data = next((name for name in sorted(names) if name in bindings.sizes), None)
        if data is not None:
            constant = _CXX_CONSTANT.fullmatch(data)
            shown = f"MPI::{constant.group(1)}" if constant is not None else data
            instead = ', or run it on the system\'s own ("dryfly mpi add NAME=/usr")'
            raise UserError(
                f"{user.path.name} uses the C++ bindings of {TITLES[self.mpi.interface]} ({shown}), which MPI has no "
                f"longer and {self.mpi.name} neither: build it without them"
                f"{instead if self.mpi.family == 'openmpi' else ''}"
            )
        return names


def _is_of_old_mpich(linked_mpi: LinkedMpi) -> bool:
    """Where the library that the program was linked against is here, it tells; a distribution's may be as old."""
    cores = [part for part in linked_mpi.parts if _CORE.fullmatch(part.name)]
    here = [elf.symbols(part.path).defined for part in cores if part.path is not None]
    return any(_OF_MPI_4_1 not in defined for defined in here) or (
        not here and any(part.name.startswith("libmpich.") for part in cores)
    )


def _check_names(linked_mpi: LinkedMpi, mpi: MpiLibrary) -> None:
    for part in linked_mpi.parts:
        who = linked_mpi.user(part)
        family = family_of(part.name)
        if not family:
            known = others.whose(part.name)
            if known:
                raise UserError(f"{who} is linked against {part.name}, which is of {known}")
            raise UserError(
                f"{who} is linked against {part.name}, which dryfly does not know; link it against MPICH "
                "(libmpi.so.12), the standard ABI (libmpi_abi.so) or Open MPI 4 or 5 (libmpi.so.40)"
            )
    family = linked_mpi.family
    if family and family != mpi.interface:
        part = linked_mpi.parts[0]
        # A library's source is no program, and a Fortran program's is seldom one file.
        is_in_c = part.by == Path(linked_mpi.program).name and all(
            _CORE.fullmatch(each.name) for each in linked_mpi.parts
        )
        raise UserError(
            f"{linked_mpi.user(part)} is linked against {TITLES[family]} ({part.name}) and cannot run on {mpi.name}, "
            f"which is {TITLES[mpi.interface]}: leave --mpi out or say --mpi {family}"
            f"{', or give the .c file to dryfly run' if is_in_c else ''}"
        )


def _refuse_absent(program: str, absent: Loaded, mpi: MpiLibrary) -> NoReturn:
    if _BINDINGS.fullmatch(absent.name):
        raise UserError(
            f"{program} is linked against {absent.name}, which is not here: MPI library {mpi.name} has no Fortran "
            f'bindings; run "dryfly mpi fortran {mpi.name}" first'
        )
    stem = absent.name.partition(".so")[0]
    names = {path.name for folder in mpi.library_folders for path in Path(folder).glob(f"{stem}.so.*")}
    offered = sorted(name for name in names if re.fullmatch(r".*\.so\.\d+", name))
    instead = f"; it has {', '.join(offered)}, which the program would have to be linked against" if offered else ""
    raise UserError(
        f"{program} is linked against {absent.name} (by {_asker(absent)}), which {mpi.name} does not have{instead}"
    )


def is_part_of_mpi(name: str) -> bool:
    return _ANY_MPI.fullmatch(name) is not None


def family_of(name: str) -> str:
    """Empty where it is of none."""
    return next((family for family, names in _PARTS.items() if names.fullmatch(name)), "")


def _is_mpi(loaded: Loaded) -> bool:
    return loaded.by == "" or _ANY_MPI.fullmatch(loaded.name) is not None


def _asker(loaded: Loaded) -> str:
    return loaded.by or loaded.name


def _plain(name: str) -> str:
    """One for the spellings of C and of Fortran."""
    return name.lower().strip("_").removesuffix("_f08").removeprefix("p")


def _links(mpi: MpiLibrary) -> dict[str, Path]:
    """Further names of the library, and the file meant."""
    libmpi = Path(mpi.libmpi)
    if libmpi.name.startswith("libmpi_abi"):
        return {}
    if mpi.interface == "mpich":
        meant = dict.fromkeys(("libmpi.so.12", "libmpich.so.12", "libmpi.so", "libmpich.so"), libmpi)
    else:
        meant = dict.fromkeys(("libmpi.so.40", "libmpi.so"), libmpi)
        inner = next(iter(sorted(libmpi.parent.glob("libopen-pal.so.[0-9]*"))), None)
        if inner is not None and not (libmpi.parent / "libopen-pal.so.40").exists():
            meant |= dict.fromkeys(("libopen-pal.so.40", "libopen-rte.so.40"), inner)
    here = [Path(folder) for folder in mpi.library_folders]
    # Open MPI's wheel has a libmpi.so of a few bytes, which is for the linker.
    return {name: path for name, path in meant.items() if not any(elf.read(folder / name) for folder in here)}


def _bindings(names: Sequence[str], folders: Sequence[Path]) -> list[Path]:
    found = (loading.find(name, folders) for name in names)
    return [path for path in found if path is not None]


def _make_links(folder: Path, links: dict[str, Path]) -> None:
    for name, path in links.items():
        (folder / name).symlink_to(path)


def _aliases_of_fortran(seen: Sequence[Loaded], mpi: MpiLibrary) -> list[tuple[str, str]]:
    """The names that come from the library's folder of Fortran (mpi/fortran.py), which has links of its own."""
    own, libmpi = mpi.fortran / "lib", Path(mpi.libmpi)
    links = [each.path for each in seen if each.path is not None and each.path.parent == own and each.path.is_symlink()]
    return [(path.name, libmpi.name if path.samefile(libmpi) else path.resolve().name) for path in links]


def _wanted_by_launcher(links: Mapping[str, Path], there: frozenset[str]) -> dict[str, bool]:
    """What the launcher of a system's Open MPI 4 asks for and release 5, which it finds in a rank, has not; whether it
    is data. With stand-ins for it the preload is loaded, and says that a script starts a launcher."""
    launcher = shutil.which("orterun") if _OF_LAUNCHER in links else None
    if launcher is None:
        return {}
    symbols = elf.symbols(Path(launcher))
    missing = sorted(name for name in symbols.wanted - there if _NAME_OF_MPI.fullmatch(name))
    return {name: name in symbols.copied for name in missing}


def _kept(
    mpi: MpiLibrary,
    links: dict[str, Path],
    missing: Sequence[str],
    cxx: Mapping[str, Sequence[str]],
    launcher: Mapping[str, bool],
) -> Path:
    """The folder of links and stand-ins, made now or by an earlier run."""
    about = Path(mpi.libmpi).stat()
    facts = [mpi.libmpi, about.st_size, about.st_mtime_ns, sorted(links.items()), list(missing), sorted(cxx.items())]
    facts.append(sorted(launcher.items()))
    final = cache_folder() / "system" / hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
    if final.is_dir():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".fresh-", dir=final.parent))
    try:
        _make_links(fresh, links)
        if (missing or launcher) and stubs.supported():
            functions = [*missing, *(name for name, is_data in launcher.items() if not is_data and name not in missing)]
            data = [name for name, is_data in launcher.items() if is_data]
            status = _UNSUPPORTED_OPERATION[mpi.interface]
            content = stubs.library(_STAND_INS, _sentences(functions, mpi), status=status, data=data)
            (fresh / _STAND_INS).write_bytes(content)
        for soname, names in cxx.items():
            (fresh / soname).write_bytes(stubs.library(soname, _sentences(names, mpi), status=None))
        fresh.chmod(0o755)
        fresh.rename(final)
    except OSError:
        if not final.is_dir():  # another run has made the same
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return final


def _sentences(names: Sequence[str], mpi: MpiLibrary) -> list[tuple[str, str]]:
    return [
        (name, f"dryfly: the program calls {name.removeprefix('P')}, which {mpi.name} does not have") for name in names
    ]
