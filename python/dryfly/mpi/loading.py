"""Which files the dynamic linker will load for a program, and on whose account, as ld.so(8) describes it for glibc:
RPATH where there is no RUNPATH, LD_LIBRARY_PATH, RUNPATH, /etc/ld.so.cache, the system's folders.

Left out: what the program loads itself (dlopen), LD_PRELOAD, and variants of a library for newer processors.
"""

from __future__ import annotations

import functools
import platform
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.mpi import elf

SYSTEM_FOLDERS = tuple(
    Path(folder)
    for folder in (
        f"/lib/{platform.machine()}-linux-gnu",
        f"/usr/lib/{platform.machine()}-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )
)
_CACHE = Path("/etc/ld.so.cache")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_FLAGS = {"x86_64": 0x0303, "aarch64": 0x0A03}
_CACHE_HEADER = 48
_CACHE_ENTRY = struct.Struct("<iIIIQ")


@dataclass(frozen=True, kw_only=True)
class Loaded:
    name: str  # by which it was asked for; of the program, its path
    path: Path | None  # None: not found
    by: str  # the file name of what asked first; empty: the program itself
    facts: elf.ElfFacts | None


def folders_of(text: str | None) -> tuple[Path, ...]:
    """Of a variable such as LD_LIBRARY_PATH."""
    return tuple(Path(folder) for folder in (text or "").split(":") if folder)


def closure(program: Path, library_path: Sequence[Path]) -> list[Loaded]:
    """The program first, then each library once, in the order of loading. `library_path`: LD_LIBRARY_PATH."""
    first = Loaded(name=str(program), path=program, by="", facts=elf.read(program))
    found = [first]
    seen = {str(program)}
    queue: list[tuple[Loaded, tuple[Path, ...]]] = [(first, ())]  # and the RPATH of those that brought it in
    for each, inherited in queue:
        if each.facts is None or each.path is None:
            continue
        rpath = () if each.facts.runpath else (*each.facts.rpath, *inherited)
        for name in each.facts.needed:
            if name in seen:
                continue
            path = find(name, (*rpath, *library_path, *each.facts.runpath))
            facts = elf.read(path) if path is not None else None
            seen |= {name, *([facts.soname] if facts is not None and facts.soname else [])}
            loaded = Loaded(name=name, path=path, by=each.path.name, facts=facts)
            found.append(loaded)
            queue.append((loaded, (*each.facts.rpath, *inherited)))
    return found


def find(name: str, folders: Sequence[Path]) -> Path | None:
    """In these folders, then where the system looks."""
    if "/" in name:
        return Path(name) if Path(name).is_file() else None
    return next((path for path in _places(name, folders) if path.is_file()), None)


def _places(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        yield folder / name
    cached = _cached().get(name)
    if cached is not None:
        yield Path(cached)
    for folder in SYSTEM_FOLDERS:
        yield folder / name


@functools.cache
def _cached() -> dict[str, str]:
    """What ldconfig has noted for programs of this processor; nothing where there is no such file."""
    try:
        return read_cache(_CACHE.read_bytes())
    except OSError:
        return {}


def read_cache(content: bytes) -> dict[str, str]:
    start = content.find(_CACHE_MAGIC)  # older ones have a part in the format of libc 5 in front
    wanted = _CACHE_FLAGS.get(platform.machine())
    if start < 0 or wanted is None:
        return {}
    base = content[start:]
    count = int.from_bytes(base[len(_CACHE_MAGIC) : len(_CACHE_MAGIC) + 4], "little")
    found: dict[str, str] = {}
    for place in range(count):
        at = _CACHE_HEADER + place * _CACHE_ENTRY.size
        if at + _CACHE_ENTRY.size > len(base):
            break
        flags, key, value, _, hardware = _CACHE_ENTRY.unpack_from(base, at)
        if flags == wanted and hardware == 0:
            found.setdefault(_text(base, key), _text(base, value))
    return found


def _text(content: bytes, start: int) -> str:
    return content[start : content.find(b"\0", start)].decode(errors="replace")
