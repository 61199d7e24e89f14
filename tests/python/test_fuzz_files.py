"""As test_fuzz.py, for files of cables and of storage traffic, and for the result that the simulator hands over."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_fuzz import anything, mutated, quantities, repeatable

from dryfly.base.errors import DryflyError, UserError
from dryfly.machine import cabling
from dryfly.machine.load import load
from dryfly.result import result
from dryfly.scenario import noise, storage

_CABLES = """from,to,state
x1c0r0j0p0,x1c0r1j0p0,up
x1c0r0j1p0,x2c0r0j1p0
x1c0s0b0n0h0,x1c0r0j2p0
x1c0s0b0n1h0,x1c0r1j2p0,down
x2c0s0b0n0h0,x2c0r0j2p0
x1c0s0b0n0,,down
"""
_AURORA = storage.with_servers(load("aurora"))
_JOB = tuple(range(4))


def _read(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with contextlib.suppress(UserError):
        cabling.read(file, ports_max=64)


@repeatable
@given(text=mutated(_CABLES))
def test_a_list_of_cables(text: str, tmp_path: Path) -> None:
    _read(tmp_path / "cables", text.encode(errors="surrogateescape"))


numbers_in_names = st.sampled_from(["0", "7", "12345678901", "9" * 5000, "٣", "-1", ""])


@repeatable
@given(cabinet=numbers_in_names, nic=numbers_in_names, quote=st.sampled_from(["", '"', "\0", '"' + "a" * 200_000]))
def test_a_cable_with_an_odd_name(cabinet: str, nic: str, quote: str, tmp_path: Path) -> None:
    _read(tmp_path / "cables", f"x{cabinet}c0s0b0n0h{nic},x{cabinet}c0r0j0p0{quote}\n".encode())


entries = st.dictionaries(
    st.sampled_from(["nodes", "rate", "transfer", "at", "for", "bytes", "class", "bites"]),
    st.one_of(quantities, anything, st.sampled_from(["job", "others", "all", "10 GB/s", "1 MiB", "1 s"])),
    max_size=7,
)


@repeatable
@given(
    kind=st.sampled_from(["read", "write", "seed", "copy"]), tables=st.one_of(st.lists(entries, max_size=2), anything)
)
def test_a_file_of_storage_traffic(kind: str, tables: Any) -> None:
    with contextlib.suppress(UserError):
        storage.lines(_AURORA, storage.parse({kind: tables}, _AURORA, job=_JOB, seed=1))


detours = st.dictionaries(
    st.sampled_from(["every", "length", "share", "on", "instants", "node", "name", "evry"]),
    st.one_of(quantities, anything, st.sampled_from(["1 ms", ["1 us", "3 us"], 0.5, "one core", "random", "t0"])),
    max_size=7,
)


@repeatable
@given(
    kind=st.sampled_from(["detour", "start_skew", "detours"]), tables=st.one_of(st.lists(detours, max_size=2), anything)
)
def test_a_file_of_noise(kind: str, tables: Any) -> None:
    with contextlib.suppress(UserError):
        noise.lines(_AURORA, noise.parse({kind: tables}, _AURORA))


@repeatable
@given(text=mutated(json.dumps({"messages": 1, "ranks": [], "fingerprint": "00"})))
def test_what_a_broken_simulator_leaves(text: str, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(DryflyError):
        assert isinstance(result.load_counted(file), dict)
