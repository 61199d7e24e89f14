"""Tables of what MPI libraries execute: how they are read, when they are refused, and what ranks are given."""

from __future__ import annotations

import platform
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.case.case import Case
from dryfly.case.program import Program
from dryfly.mpi import software
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.software import BOUNDARIES, Charges, Cost, Packing, SoftwareTable
from dryfly.report import software as report
from dryfly.result import software_spent
from dryfly.study import instructions, software_costs
from dryfly.study.instructions import InBlocks, cost_in, cost_of, packing_of, why

ROOT = Path(__file__).resolve().parents[2]
TABLE = SoftwareTable(
    library="mpich-1",
    build="0123456789abcdef",
    architecture="x86_64",
    processor="avx2",
    tool="dryfly 0",
    calls={
        "MPI_Send": {
            ("call", "inject"): Cost(instructions=400.0, per_kib=0.0, seen=30),
            ("inject", "call"): Cost(instructions=200.0, per_kib=96.0, seen=10),
            ("poll", "poll"): Cost(instructions=9999.0, per_kib=0.0, seen=5),
        },
        "MPI_Recv": {("call", "inject"): Cost(instructions=100.0, per_kib=0.0, seen=10)},
    },
    pack=Packing(instructions=200.0, per_block=10.0, per_kib=100.0, seen=6),
    unpack=Packing(instructions=100.0, per_block=20.0, per_kib=0.0, seen=6),
    reductions={"MPI_DOUBLE MPI_SUM": 512.0, "MPI_INT8_T MPI_MAX": 4096.0},
)


def _library(folder: Path) -> MpiLibrary:
    for name in ("libmpi.so", "libfabric.so"):
        (folder / name).write_text(name, encoding="utf-8")
    return MpiLibrary(
        name="mpich-1", family="mpich", version="1", prefix=str(folder),
        libmpi=str(folder / "libmpi.so"), libfabric=str(folder / "libfabric.so"),
    )  # fmt: skip


_ROW = 48 + 17 * 17 * 8  # rank::SoftwareRow


def _entry(encoded: bytes, row: int, start: str, end: str) -> tuple[int, int]:
    at = 48 + row * _ROW + 48 + 8 * (BOUNDARIES.index(start) * 17 + BOUNDARIES.index(end))
    ps, per_kib = struct.unpack_from("=II", encoded, at)
    return ps, per_kib


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    software.write(TABLE, tmp_path / "table.toml")
    assert software.read(tmp_path / "table.toml") == TABLE


def test_what_ranks_get_is_instructions_times_their_time_and_means_for_the_rest() -> None:
    encoded = software.encoded(TABLE, software.Prices(instruction_ps=500, data_ps_per_kib=85_000))
    assumed = 1 << 31
    assert encoded[:24] == b"dfsoft02" + struct.pack("=QQ", 3, 2)
    # A loop's instruction takes 0.2 of the time of one of MPI's own code; bytes take what memory takes, or the library
    # copies them.
    assert struct.unpack_from("=6I", encoded, 24) == (100_000, 1000, 85_000, 50_000, 2000, 0)
    send = 2  # rows: calls without one, MPI_Recv, MPI_Send
    assert _entry(encoded, send, "call", "inject") == (200_000, 0)
    assert _entry(encoded, send, "inject", "call") == (100_000, 85_000)  # it goes through the data
    # The mean of the call's intervals by how often they were seen, empty polls left out.
    assert _entry(encoded, send, "arrived", "call") == (assumed | 175_000, 0)
    assert _entry(encoded, 0, "call", "inject") == (assumed | 162_500, 0)
    reductions = [
        (datatype.rstrip(b"\0").decode(), operation.rstrip(b"\0").decode(), scale)
        for datatype, operation, scale in struct.iter_unpack("=32s16sI", encoded[48 + 3 * _ROW :])
    ]
    # 512 instructions in 51.2 ns are waiting for memory, 4,096 are not.
    assert reductions == [("MPI_DOUBLE", "MPI_SUM", 1024), ("MPI_INT8_T", "MPI_MAX", round(1024 * 409.6 / 85))]


def test_an_interval_that_adds_up_in_some_steps_costs_its_share_of_that() -> None:
    adds = {("arrived", "receive"): Cost(instructions=0.0, per_kib=256.0, seen=8)}
    table = replace(TABLE, calls={"MPI_Allreduce": adds, "MPI_Alltoall": adds})
    encoded = software.encoded(table, software.Prices(instruction_ps=500, data_ps_per_kib=85_000))
    assert _entry(encoded, 1, "arrived", "receive") == (0, 42_500)  # half of 512
    assert _entry(encoded, 2, "arrived", "receive") == (0, 85_000)


def test_a_call_with_large_counts_costs_what_the_plain_one_does() -> None:
    charges = Charges(TABLE)
    assert charges.cost("MPI_Send_c", ("call", "inject")) == charges.cost("MPI_Send", ("call", "inject"))
    assert charges.cost("MPI_Scan_c", ("call", "inject"))[1] == "others"


def test_packing_is_what_blocks_take_more_than_a_contiguous_message() -> None:
    interval = ("call", "send_eager")
    counted = {"MPI_Isend": {interval: {512: [400, 400], 8192: [420, 420]}}}
    # 150 a message, 7 a block and 64 a KiB, on top of what the contiguous ones take.
    seen = [
        InBlocks(call="MPI_Isend", interval=interval, size=size, blocks=blocks, executed=more + 7 * blocks + size // 16)
        for size, more in ((512, 550), (8192, 570))
        for blocks in (size // 8, size // 128)
    ]
    assert packing_of(counted, seen) == Packing(instructions=150.0, per_block=7.0, per_kib=64.0, seen=4)
    assert packing_of(counted, []) == software.NO_PACKING


def test_a_line_goes_through_the_medians_where_data_are_gone_through() -> None:
    sizes = {0: [100, 100, 5000], 8192: [900, 900, 900], 16384: [1700, 1700, 1700]}
    assert cost_of(sizes) == Cost(instructions=100.0, per_kib=100.0, seen=9)
    flat = {8: [100] * 5, 65536: [100] * 5}
    assert cost_of(flat) == Cost(instructions=100.0, per_kib=0.0, seen=10)
    # Neither what differs between small messages nor what grows by less than any loop over the data would.
    assert cost_of({0: [100] * 3, 8: [130] * 5}) == Cost(instructions=130.0, per_kib=0.0, seen=8)
    assert cost_of({0: [100] * 3, 65536: [140] * 5}) == Cost(instructions=140.0, per_kib=0.0, seen=8)


def test_a_reduction_s_long_messages_which_are_of_one_size_add_up_where_they_take_as_many() -> None:
    sums = 96.0
    adding = {32768: [1000 + 32 * 96] * 2}
    assert cost_in("MPI_Wait (reduction)", adding, sums) == Cost(instructions=1000.0, per_kib=sums, seen=2)
    for call, sizes in (
        ("MPI_Wait (collective)", adding),
        ("MPI_Scan", {32768: [3000]}),
        ("MPI_Scan", {2048: [9000]}),
    ):
        assert cost_in(call, sizes, sums).per_kib == 0.0


def test_a_table_of_another_build_is_refused_with_what_counts_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = _library(tmp_path)
    monkeypatch.setattr(software, "cached_file", lambda _: tmp_path / "nothing.toml")
    assert software.load(library) is None
    monkeypatch.setattr(software, "cached_file", lambda _: tmp_path / "table.toml")
    software.write(TABLE, tmp_path / "table.toml")
    with pytest.raises(
        UserError, match=r'counted for build 0123456789abcdef, and this is .*"dryfly mpi measure mpich-1"'
    ):
        software.load(library)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"library": "mpich-2"}, "for library mpich-2, and this is mpich-1"),
        ({"architecture": "riscv128"}, "for processor architecture riscv128, and this is"),
    ],
)
def test_a_table_of_another_library_or_architecture_is_refused_whatever_its_build(
    change: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = _library(tmp_path)
    table = replace(TABLE, build=software.build_of(library), architecture=platform.machine())
    monkeypatch.setattr(software, "cached_file", lambda _: tmp_path / "table.toml")
    software.write(table, tmp_path / "table.toml")
    assert software.load(library) == table
    software.write(replace(table, **change), tmp_path / "table.toml")
    with pytest.raises(UserError, match=rf'{said}.*; "dryfly mpi measure mpich-1" counts it anew'):
        software.load(library)
    # By default the next that fits is taken, and none where none does; whoever asks for it is told.
    told: list[str] = []
    assert software.charged(None, library, say=told.append) is None
    assert len(told) == 1
    assert said in told[0]
    monkeypatch.setattr(software, "data_folder", lambda: tmp_path / "data")
    (tmp_path / "data" / "mpi" / "software").mkdir(parents=True)
    software.write(table, tmp_path / "data" / "mpi" / "software" / "mpich-1.toml")
    assert software.charged(None, library) == table
    with pytest.raises(UserError, match=said):
        software.charged("measured", library)


def test_what_could_not_be_counted_is_said_and_not_only_that_a_rank_ended() -> None:
    said = (
        "dryfly: warning: slow\ndryfly: instructions cannot be counted: ptrace: Operation not permitted\n"
        "dryfly: rank 1 on t1 (pid 7) exited with status 70; the job was ended\n"
    )
    assert why(said) == "instructions cannot be counted: ptrace: Operation not permitted"
    assert why("dryfly: rank 1 exited with status 1\n") == "rank 1 exited with status 1"
    assert why("") == "the run says nothing"


def test_each_step_of_a_measurement_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[Any, ...]] = []  # folder, nodes, ranks of each, words
    made = Program(shown="calls.c", command=("/calls",), kind="")
    monkeypatch.setattr(instructions, "prepare", lambda *_, **__: made)
    monkeypatch.setattr(instructions, "native", lambda _: Path("/count"))
    monkeypatch.setattr(instructions, "table_of", lambda *_: TABLE)

    def count(case: Case, folder: Path, *, say: Callable[[str], None]) -> None:
        counted.append((folder.name, case.nodes, case.ppn, case.program[1:]))
        say("1 min so far")

    monkeypatch.setattr(instructions, "_count", count)
    said: list[str] = []
    assert instructions.measure(_library(tmp_path), say=said.append) is TABLE
    assert counted[0][1:] == (8, None, ("--ranks=0,2,3", "/calls"))
    assert counted[1:] == [
        ("wide", 16, None, ("--ranks=0,6,15", "/calls", "wide")),
        ("node", 2, 2, ("--ranks=0,3", "/calls", "node")),
    ]
    assert said[:3] == [
        "mpich-1: step 1 of 3: 8 ranks on a node each",
        "mpich-1: step 1 of 3: 1 min so far",
        "mpich-1: step 2 of 3: 16 ranks on a node each",
    ]
    assert all(line.isprintable() for line in said)


def test_a_step_that_takes_long_is_told_of_while_it_lasts_and_its_words_are_kept() -> None:
    code = "import time; print('first', flush=True); time.sleep(0.7); print('last')"
    said: list[str] = []
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert instructions.patiently(run, said.append, every_s=0.3) == "first\nlast\n"
    assert said[0] == "0.005 min so far"
    assert run.returncode == 0


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dryfly").write_text("a file", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"dryfly/mpi/software cannot be made .*-o FILE"):
        software.make_cache()


# What a run spent.

SEND, INJECT, CALL, ARRIVED, COPY, LOOK = "MPI_Send", 1, 0, 12, 16, 1
COUNTED: dict[str, Any] = {
    "ranks": [
        {"rank": 0, "software": [[SEND, CALL, INJECT, 3, 24, 600_000], [SEND, INJECT, CALL, 3, 3072, 301_800],
                                 [SEND, COPY, COPY, 1, 4096, 1000], [SEND, COPY, CALL, 2, 2048, 900],
                                 [SEND, COPY, LOOK, 3, 512, 450]]},
        {"rank": 1, "software": [[SEND, CALL, INJECT, 1, 8, 200_000], [SEND, ARRIVED, CALL, 2, 0, 350_000],
                                 ["MPI_Scan", CALL, INJECT, 1, 0, 162_500]]},
    ]
}  # fmt: skip


def _spent() -> dict[str, Any]:
    ranks = software_spent.of_ranks(COUNTED, Charges(TABLE))
    spent = software_spent.content(ranks, slowest=1, profile=[{"call": SEND, "count": 4}])
    charged = {"table": "mpich-1", "charged_s": 1_616_650e-12, "assumed_s": 512_500e-12}
    return {**charged, **spent}


def test_what_ranks_spent_is_told_by_call_and_by_how_it_is_known() -> None:
    spent = _spent()
    # 4 x 400 to the injection; 3 x 200 behind it and 96 for each of 3 KiB; 2 x 350, the mean; the
    # other calls' mean of call to inject, (30 x 400 + 10 x 100) / 40.
    assert spent["instructions"] == 1600 + 888 + 700 + 325
    assert spent["time_s"] == pytest.approx(
        {
            "counted": 1_101_800e-12,
            "call": 350_000e-12,
            "others": 162_500e-12,
            "copied": 1000e-12,
            "packed": 900e-12,
            "looked": 450e-12,
        }
    )
    send, scan = spent["calls"]
    assert (send["call"], send["count"], send["intervals"], send["copied_bytes"]) == (SEND, 4, 9, 4096)
    assert send["instructions"] == 3188
    assert send["assumed_s"] == pytest.approx(350_000e-12)
    assert (scan["call"], scan["count"], scan["assumed_s"]) == ("MPI_Scan", 0, scan["time_s"])
    assert [(row["from"], row["to"], row["how"], row["intervals"]) for row in spent["kinds"]] == [
        ("call", "inject", "counted", 4),
        ("arrived", "call", "call", 2),
        ("inject", "call", "counted", 3),
        ("call", "inject", "others", 1),
        ("", "", "copied", 1),
        ("", "", "packed", 2),
        ("", "", "looked", 3),
    ]
    assert spent["slowest"]["rank"] == 1
    assert [row["call"] for row in spent["slowest"]["calls"]] == [SEND, "MPI_Scan"]


def test_each_ranks_kinds_are_rows_of_a_recording() -> None:
    columns = software_spent.columns(software_spent.of_ranks(COUNTED, Charges(TABLE)), (0, 1))
    assert columns["rank"] == [0, 0, 0, 0, 0, 1, 1, 1]
    assert columns["intervals"] == [3, 3, 1, 2, 3, 2, 1, 1]
    assert columns["how"] == ["counted", "counted", "copied", "packed", "looked", "call", "counted", "others"]


def test_kinds_that_a_rank_had_no_room_for_have_a_time_and_no_instructions() -> None:
    (rank,) = software_spent.of_ranks({"ranks": [{"software": [["", 0, 0, 5, 40, 777]]}]}, Charges(TABLE))
    ((kind, part),) = rank.items()
    assert (kind.call, kind.how, part.intervals, part.instructions, part.ps) == ("", "others", 5, 0.0, 777)


def test_nothing_is_spent_without_a_table() -> None:
    ranks = software_spent.of_ranks({"ranks": [{"rank": 0, "software": []}]}, None)
    spent = software_spent.content(ranks, slowest=0, profile=[])
    assert (spent["instructions"], spent["calls"], spent["kinds"]) == (0, [], [])


def test_costs_are_for_each_message_and_absent_calls_have_none() -> None:
    costs = software_costs.of({"software": _spent(), "messages": 4})
    assert costs is not None
    assert costs.total.instructions == pytest.approx(3513 / 4)
    assert costs.assumed == pytest.approx(512_500 / 1_616_650)
    other = replace(costs, calls=costs.calls[:1])
    rows = software_costs.table({"a": costs, "b": other})
    assert [row[0] for row in rows] == [SEND, "MPI_Scan", software_costs.ALL]
    assert rows[0][1] == "797.0 (363.5 ns)"
    assert rows[1][2] == "-"
    (first, second) = software_costs.notes({"a": costs}, [("c", "mpich-9")])
    assert first == "a: 32% of it by means"
    assert '"dryfly mpi measure mpich-9"' in second


def test_without_messages_or_a_table_there_are_no_costs_for_each() -> None:
    assert software_costs.of({"software": _spent(), "messages": 0}) is None
    assert software_costs.of({"software": {**_spent(), "table": ""}, "messages": 4}) is None
    assert software_costs.of({"messages": 4}) is None


def test_the_report_says_where_the_softwares_time_goes_and_what_rests_on_means() -> None:
    result = {"software": _spent(), "messages": 4, "ranks": 2, "virtual_time_s": 10e-6}
    page = report.shown(result)
    assert "8.1% of their time" in page  # 1.616 us of 2 x 10 us
    assert "21.6% by the mean of the call&#x27;s other intervals" in page
    assert "10.1% by the mean of other calls" in page
    kinds = page[page.index("By kind of interval") :]
    assert kinds.index("<td>entry</td><td>inject</td>") < kinds.index("<td>message found</td><td>return</td>")
    assert report.shown({"software": {"table": "", "charged_s": 0.0, "assumed_s": 0.0}}) == ""


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
