"""What is read of ELF files, against pyelftools, and of files that are damaged."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from dryfly.mpi import elf, loading

_LIBC = loading.find("libc.so.6", ())
_LOADED = sorted({str(each.path) for each in loading.closure(Path(sys.executable), ()) if each.path is not None})
_MORE = [str(path) for name in ("libstdc++.so.6", "libz.so.1") if (path := loading.find(name, ())) is not None]


@pytest.mark.parametrize("path", [Path(name) for name in dict.fromkeys([*_LOADED, *_MORE])], ids=lambda path: path.name)
def test_files_are_read_as_another_reads_them(path: Path) -> None:
    facts, symbols = elf.read(path), elf.symbols(path)
    assert facts is not None
    with path.open("rb") as file:
        other = ELFFile(file)
        tags = [tag for part in other.iter_segments() if isinstance(part, DynamicSegment) for tag in part.iter_tags()]
        assert list(facts.needed) == [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]
        assert [facts.soname] == ([tag.soname for tag in tags if tag.entry.d_tag == "DT_SONAME"] or [""])
        assert len(facts.runpath) == sum(len(tag.runpath.split(":")) for tag in tags if tag.entry.d_tag == "DT_RUNPATH")
        kinds = [part["p_type"] for part in other.iter_segments()]
        assert facts.is_library == (other["e_type"] == "ET_DYN" and "PT_INTERP" not in kinds)
        assert facts.runs_here
        assert not facts.is_go

        table = other.get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        names = list(table.iter_symbols())
        copied = {names[each["r_info_sym"]].name for each in _copies(other)}
        assert symbols.copied == copied
        assert symbols.defined == {each.name for each in names if each["st_shndx"] != "SHN_UNDEF"} - copied
        asked = {
            each.name for each in names if each["st_shndx"] == "SHN_UNDEF" and each["st_info"]["bind"] != "STB_WEAK"
        }
        assert symbols.wanted == (asked | copied) - {""}
        defined, wanted = set[str](), list[tuple[str, str]]()
        for section in other.iter_sections():
            if isinstance(section, GNUVerDefSection):
                defined |= {str(next(given).name) for _, given in section.iter_versions()}
            elif isinstance(section, GNUVerNeedSection):
                wanted += [(str(of.name), str(each.name)) for of, asked in section.iter_versions() for each in asked]
        assert symbols.versions == defined
        assert list(symbols.wanted_versions) == wanted


def _copies(other: ELFFile) -> list:  # type: ignore[type-arg]  # pyelftools names no type of a relocation's entry
    section = other.get_section_by_name(".rela.dyn")
    return [each for each in section.iter_relocations() if each["r_info_type"] == 5] if section is not None else []


def test_damaged_files_are_no_elf_or_an_odd_one(tmp_path: Path) -> None:
    assert _LIBC is not None
    whole = _LIBC.read_bytes()
    chance = random.Random(7)
    for trial in range(300):
        content = bytearray(whole[: chance.randrange(len(whole))] if trial % 3 == 0 else whole)
        for _ in range(chance.randrange(1, 40)):
            if content:
                content[chance.randrange(min(len(content), 1 << chance.randrange(6, 22)))] = chance.randrange(256)
        path = tmp_path / f"{trial}.so"
        path.write_bytes(content)
        elf.read(path)
        elf.symbols(path)
        elf.has_function(path, "main")
        path.unlink()


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + bytes(20)])
def test_what_is_no_elf_is_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    facts = elf.read(path)
    assert facts is None or not facts.runs_here
    assert elf.symbols(path).defined == frozenset()


def test_files_of_32_bits_do_not_run_here(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(60))
    facts = elf.read(path)
    assert facts is not None
    assert not facts.runs_here
