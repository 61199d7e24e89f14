"""What can be known of a program or a library from its file: how it is linked, and which names it has and asks for.

Read here and not by pyelftools, which takes 5 ms for a file and 5 for its names, where this takes 0.3 and 1.4: a run
asks of two dozen files before it starts. Of 64 bits and this byte order, as the generic ABI and glibc's symbol versions
(LSB, chapter 10) have them; of other files only that they do not run here.
"""

from __future__ import annotations

import functools
import itertools
import mmap
import platform
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_MACHINES = {"x86_64": 62, "aarch64": 183}  # e_machine
_IDENTITY = b"\x7fELF\x02\x01"  # 64 bits, the least byte first
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")  # Elf64_Ehdr
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_DYNAMIC = struct.Struct("<QQ")  # Elf64_Dyn
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_RELOCATION = struct.Struct("<QQq")  # Elf64_Rela
_DEFINED_VERSION = struct.Struct("<HHHHIII")  # Elf64_Verdef
_NEEDED_FILE = struct.Struct("<HHIII")  # Elf64_Verneed
_NEEDED_VERSION = struct.Struct("<IHHII")  # Elf64_Vernaux
_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_SHT_SYMTAB, _SHT_DYNSYM, _SHT_VERDEF, _SHT_VERNEED = 2, 11, 0x6FFFFFFD, 0x6FFFFFFE
_DT_NEEDED, _DT_STRTAB, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 14, 15, 29
_WEAK, _OBJECT, _FUNCTION = 2, 1, 2
_COPY = {62: 5, 183: 1024}  # R_X86_64_COPY, R_AARCH64_COPY
_MALFORMED = (OSError, ValueError, IndexError, OverflowError, struct.error)


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
        return file.read(4) == _IDENTITY[:4]


@contextmanager
def _opened(path: Path) -> Iterator[_Elf]:
    """Raises one of _MALFORMED."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(_IDENTITY)] != _IDENTITY:
            raise ValueError("no ELF of 64 bits")
        yield _Elf(content)


def read(path: Path) -> ElfFacts | None:
    """None if the file is no well-formed ELF."""
    try:
        about = path.stat()
        return _read_once(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except _MALFORMED:
        return None


@functools.cache
def _read_once(path: Path, *_: int) -> ElfFacts:
    """The same file is asked about several times before a run starts."""
    with path.open("rb") as file:
        identity = file.read(len(_IDENTITY))
    if identity[:4] == _IDENTITY[:4] and identity != _IDENTITY:
        return ElfFacts(
            is_library=False, runs_here=False, is_static=False, is_go=False, soname="", needed=(), rpath=(), runpath=(),
        )  # fmt: skip
    with _opened(path) as elf:
        names = elf.dynamic()
        interpreter = any(kind == _PT_INTERP for kind, *_ in elf.segments)
        origin = path.resolve().parent
        return ElfFacts(
            is_library=elf.type == _ET_DYN and not interpreter,
            runs_here=elf.machine == _MACHINES.get(platform.machine(), elf.machine),
            is_static=not interpreter and not names[_DT_NEEDED],
            is_go=any(section.name in (".note.go.buildid", ".go.buildinfo") for section in elf.sections),
            soname="".join(names[_DT_SONAME][:1]),
            needed=tuple(names[_DT_NEEDED]),
            rpath=tuple(folder for text in names[_DT_RPATH] for folder in _folders(text, origin)),
            runpath=tuple(folder for text in names[_DT_RUNPATH] for folder in _folders(text, origin)),
        )


def _folders(text: str, origin: Path) -> list[Path]:
    return [
        Path(folder.replace("${ORIGIN}", str(origin)).replace("$ORIGIN", str(origin)))
        for folder in text.split(":")
        if folder
    ]


@dataclass(frozen=True, kw_only=True)
class _Section:
    name: str
    kind: int
    start: int
    length: int
    link: int  # the section with its names
    entries: int
    entry_bytes: int


class _Elf:
    def __init__(self, content: mmap.mmap) -> None:
        self._content = content
        (
            self.type, self.machine, _version, _entry, segments_at, sections_at, _flags, _size, segment_bytes,
            segment_count, section_bytes, section_count, self._section_of_names,
        ) = _HEADER.unpack_from(content)  # fmt: skip
        self.segments = [
            _PROGRAM_HEADER.unpack_from(content, segments_at + index * segment_bytes) for index in range(segment_count)
        ]
        self._sections = [
            _SECTION.unpack_from(content, sections_at + index * section_bytes) for index in range(section_count)
        ]

    def dynamic(self) -> dict[int, list[str]]:
        """What the dynamic segment names, by tag."""
        entries: list[tuple[int, int]] = []
        for kind, _, start, _, _, length, _, _ in self.segments:
            if kind == _PT_DYNAMIC:
                table = self._content[start : start + length - length % _DYNAMIC.size]
                entries += itertools.takewhile(lambda entry: entry[0] != 0, _DYNAMIC.iter_unpack(table))
        names_at = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
        for kind, _, start, address, _, length, _, _ in self.segments:
            if kind == _PT_LOAD and address <= names_at < address + length:
                names_at += start - address
                break
        found: dict[int, list[str]] = {tag: [] for tag in (_DT_NEEDED, _DT_SONAME, _DT_RPATH, _DT_RUNPATH)}
        for tag, value in entries:
            if tag in found:
                found[tag].append(_text(self._content, names_at + value))
        return found

    @functools.cached_property
    def sections(self) -> list[_Section]:
        if not self._sections:
            return []
        names_at = self._sections[self._section_of_names][4]
        return [
            _Section(
                name=_text(self._content, names_at + name), kind=kind, start=start, length=length, link=link,
                entries=entries, entry_bytes=entry_bytes,
            )
            for name, kind, _flags, _address, start, length, link, entries, _align, entry_bytes in self._sections
        ]  # fmt: skip

    def content(self, section: _Section) -> bytes:
        return self._content[section.start : section.start + section.length]

    def names(self, section: _Section) -> bytes:
        return self.content(self.sections[section.link])

    def symbols(self, kind: int) -> tuple[bytes, Iterator[tuple[int, ...]]]:
        """Where the names are, and the table, empty where the file lacks it."""
        for section in self.sections:
            if section.kind == kind and section.entry_bytes == _SYMBOL.size:
                return self.names(section), _SYMBOL.iter_unpack(self.content(section))
        return b"", iter(())

    def versions(self) -> list[str]:
        """That the file defines, the first being its own name."""
        found: list[str] = []
        for section in self.sections:
            if section.kind != _SHT_VERDEF:
                continue
            names, at = self.names(section), section.start
            for _ in range(section.entries):
                *_, first, onward = _DEFINED_VERSION.unpack_from(self._content, at)
                (name,) = struct.unpack_from("<I", self._content, at + first)
                found.append(_text(names, name))
                if onward == 0:
                    break
                at += onward
        return found

    def wanted_versions(self) -> list[tuple[str, str]]:
        """Of other files: which one, and which of its versions."""
        found: list[tuple[str, str]] = []
        for section in self.sections:
            if section.kind != _SHT_VERNEED:
                continue
            names, at = self.names(section), section.start
            for _ in range(section.entries):
                _version, count, file, first, onward = _NEEDED_FILE.unpack_from(self._content, at)
                place = at + first
                for _ in range(count):
                    *_, name, further = _NEEDED_VERSION.unpack_from(self._content, place)
                    found.append((_text(names, file), _text(names, name)))
                    if further == 0:
                        break
                    place += further
                if onward == 0:
                    break
                at += onward
        return found


def _text(content: bytes | mmap.mmap, start: int) -> str:
    return content[start : content.find(b"\0", start)].decode(errors="replace")


def has_function(path: Path, name: str) -> bool:
    """Whether the file itself has it, by the full table of symbols, which a stripped file lacks."""
    wanted = name.encode() + b"\0"
    try:
        with _opened(path) as elf:
            names, table = elf.symbols(_SHT_SYMTAB)
            return wanted in names and any(
                index != 0 and info & 15 == _FUNCTION and names.startswith(wanted, start)
                for start, info, _other, index, _value, _size in table
            )
    except _MALFORMED:
        return False


def symbols(path: Path) -> Symbols:
    """Nothing for a file that is no ELF of 64 bits with a dynamic symbol table."""
    try:
        about = path.stat()
        return _symbols_once(path, about.st_ino, about.st_mtime_ns, about.st_size)
    except _MALFORMED:
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
    with _opened(path) as elf:
        text, table = elf.symbols(_SHT_DYNSYM)
        order: list[str] = []
        for start, info, _other, index, _value, size in table:
            name = _text(text, start)
            order.append(name)
            if index != 0:
                defined.add(name)
                if info >> 4 == _WEAK:
                    weak.add(name)
                if info & 15 == _OBJECT:
                    sizes[name] = size
            elif info >> 4 != _WEAK:
                wanted.add(name)
        copy = _COPY.get(elf.machine)
        for section in elf.sections:
            if order and section.name == ".rela.dyn":
                for _place, info, _addend in _RELOCATION.iter_unpack(elf.content(section)):
                    if info & 0xFFFFFFFF == copy:
                        copied.add(order[info >> 32])
        return Symbols(
            defined=frozenset(defined - copied),
            weak=frozenset(weak),
            wanted=frozenset((wanted | copied) - {""}),
            sizes=sizes,
            copied=frozenset(copied),
            versions=frozenset(elf.versions()),
            wanted_versions=tuple(elf.wanted_versions()),
        )
