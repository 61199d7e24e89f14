"""The preload as an MPI library wants it: without the MPI functions that the library has not.

mpi4py refers to the newer ones weakly, and has substitutes for those that it does not find. It would find the preload's
wrapper, which then had nothing to call. So a copy of the preload is made in which such functions are not defined: the
dynamic linker passes over a symbol without a value. The copy is kept for the next run, also where no function is
missing, because to find that out takes longer than all else that a start does here.
"""

from __future__ import annotations

import hashlib
import re
import struct
from pathlib import Path

from dryfly.base.files import write_whole
from dryfly.base.paths import PRELOAD, cache_folder, native

_WRAPPER = re.compile(r"P?MPIX?_[A-Z][a-z0-9]\w*")  # in C's spelling; that of Fortran is another's
_FUNCTION = re.compile(rb"PMPIX?_\w+")
_VALUE_IN_SYMBOL = 8  # st_value in Elf64_Sym


def for_library(libmpi: Path) -> Path:
    original = native(PRELOAD)
    facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in (original, libmpi)]
    kept = cache_folder() / "preload" / hashlib.sha256(repr(facts).encode()).hexdigest()[:16] / PRELOAD
    if kept.is_file():
        return kept
    there = {name.decode().removeprefix("P") for name in _FUNCTION.findall(libmpi.read_bytes())}
    places = [place for name, place in wrappers(original).items() if name.removeprefix("P") not in there]
    _write(kept, original.read_bytes(), places)
    return kept


def wrappers(path: Path) -> dict[str, int]:
    """The wrappers of MPI_ and PMPI_ functions, and where in the file their symbols are."""
    # Takes longer to import than it is worth to the many runs that find a copy.
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import SymbolTableSection

    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection), f"{path} has no table of symbols"
        start, size = table["sh_offset"], table["sh_entsize"]
        return {
            symbol.name: start + index * size
            for index, symbol in enumerate(table.iter_symbols())
            if _WRAPPER.fullmatch(symbol.name) and symbol["st_shndx"] != "SHN_UNDEF"
        }


def _write(path: Path, content: bytes, places: list[int]) -> None:
    changed = bytearray(content)
    for place in places:
        struct.pack_into("<Q", changed, place + _VALUE_IN_SYMBOL, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, bytes(changed))  # another run may be making the same
