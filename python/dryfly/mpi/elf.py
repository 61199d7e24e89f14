"""What can be known of a program or a library from its file: how it is linked, and which names it has and asks for."""

from __future__ import annotations

import functools
import mmap
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import StringTableSection, SymbolTableSection

_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_WEAK, _OBJECT = 2, 1
_FUNCTION = 2
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_DYNAMIC = struct.Struct("<QQ")  # Elf64_Dyn
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_RELOCATION = struct.Struct("<QQq")  # Elf64_Rela
_COPY = {"EM_X86_64": 5, "EM_AARCH64": 1024}  # R_X86_64_COPY, R_AARCH64_COPY


@dataclass(frozen=True, kw_only=True)
class ElfFacts:
    is_library: bool
    runs_here: bool  # built for this computer's processor
    is_static: bool
    is_go: bool
    soname: str  # empty: none
    needed: tuple[str, ...]
    rpath: tuple[Path, ...]  # with $ORIGIN replaced
    runpath: tuple[Path, ...]

    @property
    def search_path(self) -> tuple[Path, ...]:
        return (*self.rpath, *self.runpath)


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """Of the dynamic symbol table."""

    defined: frozenset[str]
    weak: frozenset[str]  # of those defined: other files may define them too
    wanted: frozenset[str]  # undefined, and not weak; and those of `copied`
    sizes: Mapping[str, int]  # of data that is defined
    copied: frozenset[str]  # a library's data of which the program has a copy, made by the linker
    versions: frozenset[str]  # that the file defines; empty: its symbols have none
    wanted_versions: tuple[tuple[str, str], ...]  # (soname, version)


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def read(path: Path) -> ElfFacts | None:
    """None if the file is no well-formed ELF."""
    try:
        about = path.stat()
        return _read_once(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except (ELFError, OSError):
        return None


@functools.cache
def _read_once(path: Path, *_: int) -> ElfFacts:
    """The same file is asked about several times before a run starts, and reading it takes milliseconds."""
    with path.open("rb") as file:
        return _read(ELFFile(file), path)


def _read(elf: ELFFile, path: Path) -> ElfFacts:
    interpreter = False
    needed: list[str] = []
    soname = ""
    paths: dict[str, list[Path]] = {"DT_RPATH": [], "DT_RUNPATH": []}
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_INTERP":
            interpreter = True
        if isinstance(segment, DynamicSegment):
            for entry in segment.iter_tags():
                tag: Any = entry  # its attributes depend on d_tag
                if tag.entry.d_tag == "DT_NEEDED":
                    needed.append(tag.needed)
                elif tag.entry.d_tag == "DT_SONAME":
                    soname = tag.soname
                elif tag.entry.d_tag in paths:
                    text = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
                    paths[tag.entry.d_tag] += _folders(text, path.resolve().parent)
    go = any(section.name in (".note.go.buildid", ".go.buildinfo") for section in elf.iter_sections())
    return ElfFacts(
        is_library=elf["e_type"] == "ET_DYN" and not interpreter,
        runs_here=elf["e_machine"] == _MACHINES.get(platform.machine(), elf["e_machine"]),
        is_static=not interpreter and not needed,
        is_go=go,
        soname=soname,
        needed=tuple(needed),
        rpath=tuple(paths["DT_RPATH"]),
        runpath=tuple(paths["DT_RUNPATH"]),
    )


def needed(path: Path) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """What the file is linked against, and where it wants that to be looked for: as `read` says it, in a hundredth of
    the time. Nothing for a file that is no ELF of 64 bits."""
    try:
        about = path.stat()
        return _needed_once(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except (OSError, ValueError, struct.error):
        return (), ()


@functools.cache
def _needed_once(path: Path, *_: int) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[:6] != b"\x7fELF\x02\x01":
            return (), ()
        (table_at,) = struct.unpack_from("<Q", content, 32)
        size, count = struct.unpack_from("<HH", content, 54)
        headers = [_PROGRAM_HEADER.unpack_from(content, table_at + place * size) for place in range(count)]
        loads = [(address, start, length) for kind, _, start, address, _, length, _, _ in headers if kind == _PT_LOAD]
        entries: list[tuple[int, int]] = []
        for kind, _, start, _, _, length, _, _ in headers:
            if kind == _PT_DYNAMIC:
                table = content[start : start + length - length % _DYNAMIC.size]
                entries += [(tag, value) for tag, value in _DYNAMIC.iter_unpack(table)]
        names_at = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
        base = next((start - at for at, start, length in loads if at <= names_at < at + length), 0)

        def text(value: int) -> str:
            first = names_at + base + value
            return content[first : content.find(b"\0", first)].decode(errors="replace")

        names = tuple(text(value) for tag, value in entries if tag == _DT_NEEDED)
        paths = [text(value) for tag, value in entries if tag in (_DT_RPATH, _DT_RUNPATH)]
        origin = path.resolve().parent
        return names, tuple(folder for each in paths for folder in _folders(each, origin))


def _folders(text: str, origin: Path) -> list[Path]:
    return [
        Path(folder.replace("${ORIGIN}", str(origin)).replace("$ORIGIN", str(origin)))
        for folder in text.split(":")
        if folder
    ]


def has_function(path: Path, name: str) -> bool:
    """Whether the file itself has it, by the full table of symbols, which a stripped file lacks."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            table = elf.get_section_by_name(".symtab")
            if not isinstance(table, SymbolTableSection) or table["sh_entsize"] != _SYMBOL.size:
                return False
            names = table.stringtable
            assert isinstance(names, StringTableSection)
            text, wanted = names.data(), name.encode() + b"\0"
            if wanted not in text:
                return False
            return any(
                index != 0 and info & 15 == _FUNCTION and text.startswith(wanted, start)
                for start, info, _other, index, _value, _size in _SYMBOL.iter_unpack(table.data())
            )
    except (ELFError, OSError):
        return False


def symbols(path: Path) -> Symbols:
    """Nothing for a file that is no ELF of 64 bits with a dynamic symbol table."""
    try:
        about = path.stat()
        return _symbols_once(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except (ELFError, OSError):
        return Symbols(
            defined=frozenset(), weak=frozenset(), wanted=frozenset(), sizes={}, copied=frozenset(),
            versions=frozenset(), wanted_versions=(),
        )  # fmt: skip


@functools.cache
def _symbols_once(path: Path, *_: int) -> Symbols:
    defined: set[str] = set()
    weak: set[str] = set()
    wanted: set[str] = set()
    sizes: dict[str, int] = {}
    copied: set[str] = set()
    versions: list[str] = []
    wanted_versions: list[tuple[str, str]] = []
    with path.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if isinstance(section, GNUVerDefSection):
                versions += [str(next(given).name) for _, given in section.iter_versions()]
            elif isinstance(section, GNUVerNeedSection):
                for needed, asked in section.iter_versions():
                    wanted_versions += [(str(needed.name), str(version.name)) for version in asked]
        table = elf.get_section_by_name(".dynsym")
        if isinstance(table, SymbolTableSection) and table["sh_entsize"] == _SYMBOL.size:
            names = table.stringtable
            assert isinstance(names, StringTableSection)
            text = names.data()
            order: list[str] = []
            # One by one by the library that reads ELF here this would take seconds for a large program.
            for start, info, _other, index, _value, size in _SYMBOL.iter_unpack(table.data()):
                name = text[start : text.index(b"\0", start)].decode(errors="replace")
                order.append(name)
                if index != 0:
                    defined.add(name)
                    if info >> 4 == _WEAK:
                        weak.add(name)
                    if info & 15 == _OBJECT:
                        sizes[name] = size
                elif info >> 4 != _WEAK:
                    wanted.add(name)
            relocations = elf.get_section_by_name(".rela.dyn")
            copy = _COPY.get(elf["e_machine"])
            if relocations is not None:
                for _place, info, _addend in _RELOCATION.iter_unpack(relocations.data()):
                    if info & 0xFFFFFFFF == copy:
                        copied.add(order[info >> 32])
    return Symbols(
        defined=frozenset(defined - copied),
        weak=frozenset(weak),
        wanted=frozenset((wanted | copied) - {""}),
        sizes=sizes,
        copied=frozenset(copied),
        versions=frozenset(versions),
        wanted_versions=tuple(wanted_versions),
    )
