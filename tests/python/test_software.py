"""Tables of what MPI libraries execute: how they are read, when they are refused, and what ranks are given."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.mpi import software
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.software import BOUNDARIES, Cost, SoftwareTable
from dryfly.study.instructions import cost_of

ROOT = Path(__file__).resolve().parents[2]
TABLE = SoftwareTable(
    library="mpich-1",
    build="0123456789abcdef",
    architecture="x86_64",
    tool="dryfly 0",
    calls={
        "MPI_Send": {
            ("call", "inject"): Cost(instructions=400.0, per_kib=0.0, seen=30),
            ("inject", "call"): Cost(instructions=200.0, per_kib=0.5, seen=10),
            ("poll", "poll"): Cost(instructions=9999.0, per_kib=0.0, seen=5),
        },
        "MPI_Recv": {("call", "inject"): Cost(instructions=100.0, per_kib=0.0, seen=10)},
    },
)


def _library(folder: Path) -> MpiLibrary:
    for name in ("libmpi.so", "libfabric.so"):
        (folder / name).write_text(name, encoding="utf-8")
    return MpiLibrary(
        name="mpich-1", family="mpich", version="1", prefix=str(folder),
        libmpi=str(folder / "libmpi.so"), libfabric=str(folder / "libfabric.so"),
    )  # fmt: skip


def _entry(encoded: bytes, row: int, start: str, end: str) -> tuple[int, int]:
    at = 16 + row * (48 + 16 * 16 * 8) + 48 + 8 * (BOUNDARIES.index(start) * 16 + BOUNDARIES.index(end))
    ps, per_kib = struct.unpack_from("=II", encoded, at)
    return ps, per_kib


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    software.write(TABLE, tmp_path / "table.toml")
    assert software.read(tmp_path / "table.toml") == TABLE


def test_what_ranks_get_is_instructions_times_their_time_and_means_for_the_rest() -> None:
    encoded = software.encoded(TABLE, instruction_ps=500)
    assumed = 1 << 31
    assert encoded[:16] == b"dfsoft01" + struct.pack("=Q", 3)
    send = 2  # rows: calls without one, MPI_Recv, MPI_Send
    assert _entry(encoded, send, "call", "inject") == (200_000, 0)
    assert _entry(encoded, send, "inject", "call") == (100_000, 250)
    # The mean of the call's intervals by how often they were seen, empty polls left out.
    assert _entry(encoded, send, "arrived", "call") == (assumed | 175_000, 62)
    assert _entry(encoded, 0, "call", "inject") == (assumed | 162_500, 0)


def test_a_line_goes_through_the_medians() -> None:
    sizes = {0: [100, 100, 5000], 1024: [110, 110, 110], 2048: [120, 120, 120]}
    assert cost_of(sizes) == Cost(instructions=100.0, per_kib=10.0, seen=9)
    flat = {8: [100] * 5, 65536: [100] * 5}
    assert cost_of(flat) == Cost(instructions=100.0, per_kib=0.0, seen=10)


def test_a_table_of_another_build_is_refused_with_what_counts_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = _library(tmp_path)
    monkeypatch.setattr(software, "cached_file", lambda _: tmp_path / "nothing.toml")
    assert software.load(library, None) is None
    monkeypatch.setattr(software, "cached_file", lambda _: tmp_path / "table.toml")
    software.write(TABLE, tmp_path / "table.toml")
    with pytest.raises(UserError, match=r'build 0123456789abcdef, and mpich-1 here is .*"dryfly mpi measure mpich-1"'):
        software.load(library, "measured")


def test_dryflys_own_tables_can_be_read() -> None:
    files = sorted((ROOT / "data" / "mpi" / "software").glob("*.toml"))
    assert files
    for file in files:
        table = software.read(file)
        assert file.stem == table.library
        assert {"MPI_Send", "MPI_Recv", "MPI_Allreduce", "MPI_Waitall", "MPI_Put"} <= table.calls.keys()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "library = 1",
        'library = "a"\nbuild = "b"\narchitecture = "x"\ntool = "t"\n[calls.MPI_Send]\n"call there" = [1, 0, 1]',
    ],
)
def test_what_is_no_table_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"table\.toml: not a table of software costs"):
        software.read(tmp_path / "table.toml")


def test_damaged_tables_never_end_with_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "table.toml"
    software.write(TABLE, path)
    whole = path.read_bytes()
    source = random.Random(7)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(source.randint(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        path.write_bytes(damaged)
        try:
            software.read(path)
        except UserError:
            continue
