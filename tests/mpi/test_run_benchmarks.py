"""The programs of programs/benchmark: data that is checked, files of figures, and what each of them measures."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import ROOT

from dryfly.apps import benchmarks
from dryfly.mpi.libraries import MpiLibrary

BENCHMARK = ROOT / "programs" / "benchmark"
WHERE = ("--machine", "testbed", "--compute", "none", "--software", "none", "--quiet")
ALL = sorted(path.stem for path in BENCHMARK.glob("*.c") if path.stem not in ("gpcnet", "barrier", "probe"))
NEW = (
    "acc_bw", "acc_latency", "alltoallv", "gatherv", "get_bw", "get_latency", "igather", "igatherv", "latency_mt",
    "overlap", "put_bibw", "put_bw", "put_latency", "reduce_scatter_block", "sync_pairs",
)  # fmt: skip
# One of each shape: pairs one way, both ways and many at a time, collectives with equal and with other parts, one that
# does not block, a reduction, and what goes into windows and out of them.
QUICK = ("acc_latency", "allreduce", "alltoallv", "bibw", "get_bw", "igather", "latency", "mbw_mr", "overlap", "put_bw")
EPOCHS = (
    ("allocate", "flush"), ("create", "flush_local"), ("dynamic", "lock"), ("allocate", "lock_all"),
    ("create", "pscw"), ("dynamic", "fence"),
)  # fmt: skip


def _rows(output: str) -> list[str]:
    return [line for line in output.splitlines() if not line.startswith("#")]


def test_dryfly_compare_knows_the_benchmarks() -> None:
    """But overlap, of which a share is asked, and GPCNeT, which has tables of its own."""
    assert set(benchmarks.KINDS) == {*ALL, "barrier"} - {"overlap"}
    assert set(NEW) <= set(ALL)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in ALL if name != "latency_mt"],
)
def test_neither_the_check_nor_the_file_changes_a_figure(
    dryfly: Dryfly, programs: Programs, tmp_path: Path, name: str
) -> None:
    """Five ranks, of which a pair leaves one without a part; a picosecond is the sixth digit of a microsecond.
    Calls of several threads are not repeatable."""
    command = (
        "run",
        *WHERE,
        "-n",
        "5",
        "--",
        programs(BENCHMARK / f"{name}.c"),
        "-i",
        "2",
        "-x",
        "1",
        "-m",
        "16384:32K",
    )
    bare = dryfly(*command, "--digits", "6", "--check", "0").succeeded()
    full = dryfly(*command, "--digits", "6", "--json", tmp_path / "out.json").succeeded()
    assert len(_rows(bare.stdout)) == 2
    assert full.stdout == bare.stdout + "# data checked after timing: right\n"
    assert json.loads((tmp_path / "out.json").read_text())["data"] == "right"


@pytest.mark.parametrize("name", NEW)
def test_open_mpi_moves_the_right_bytes_too(dryfly: Dryfly, name: str) -> None:
    command = ("run", *WHERE, "--mpi", "openmpi", "-n", "3", "--", BENCHMARK / f"{name}.c", "-i", "2", "-x", "1")
    run = dryfly(*command, "-m", "4096:32K", "-c").succeeded()
    assert [row.split()[-1] for row in _rows(run.stdout)] == ["Pass"] * 4


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize(("window", "synchronisation"), EPOCHS)
def test_each_window_and_synchronisation_moves_the_right_bytes(
    dryfly: Dryfly, mpi: str, window: str, synchronisation: str
) -> None:
    """Eight operations, three to an epoch; accumulates read what they change."""
    where = ("run", *WHERE, "--mpi", mpi, "-n", "2", "--")
    few = ("-i", "1", "-x", "1", "-m", "2048:4096", "-w", window, "-s", synchronisation, "--fence-interval", "3", "-c")
    for name in ("put_bibw", "acc_latency"):
        more = ("-W", "8") if name == "put_bibw" else ()
        run = dryfly(*where, BENCHMARK / f"{name}.c", *few, *more).succeeded()
        assert [row.split()[-1] for row in _rows(run.stdout)] == ["Pass"] * 2


# A call of each that does less than it should.
_LESS = {
    "put_bw": "#define MPI_Put(a, n, t, r, d, m, u, w) (MPI_Put)(a, (n)-1, t, r, d, (m)-1, u, w)",
    "get_latency": "#define MPI_Get(a, n, t, r, d, m, u, w) (MPI_Get)(a, (n)-1, t, r, d, (m)-1, u, w)",
    "acc_latency": "#define MPI_Accumulate(a, n, t, r, d, m, u, o, w) "
    "(MPI_Accumulate)(a, n, t, r, d, m, u, MPI_MAX, w)",
    "latency_mt": "#define MPI_Send(a, n, t, r, g, c) (MPI_Send)(a, (n)-1, t, r, g, c)",
    "sync_pairs": "#define MPI_Issend(a, n, t, r, g, c, q) (MPI_Issend)(a, (n)-1, t, r, g, c, q)",
    "multi_lat": "#define MPI_Send(a, n, t, r, g, c) (MPI_Send)(a, (n)-1, t, r, g, c)",
    "overlap": "#define MPI_Isend(a, n, t, r, g, c, q) (MPI_Isend)(a, (n)-1, t, r, g, c, q)",
    "gatherv": "#define MPI_Gatherv(a, n, t, b, m, d, u, r, c) (MPI_Gatherv)(a, n, t, b, m, m, u, r, c)",
    "igatherv": "#define MPI_Igatherv(a, n, t, b, m, d, u, r, c, q) (MPI_Igatherv)(a, n, t, b, m, m, u, r, c, q)",
    "alltoallv": "#define MPI_Alltoallv(a, n, d, t, b, m, e, u, c) (MPI_Alltoallv)(a, n, d, t, b, m, m, u, c)",
    "igather": "#define MPI_Igather(a, n, t, b, m, u, r, c, q) (MPI_Igather)(a, (n)-1, t, b, (m)-1, u, r, c, q)",
    "reduce_scatter_block": "#define MPI_Reduce_scatter_block(a, b, n, t, o, c) "
    "(MPI_Reduce_scatter_block)(a, b, n, t, MPI_MAX, c)",
}  # fmt: skip


@pytest.mark.parametrize("name", _LESS)
def test_the_check_after_timing_finds_what_is_wrong(
    dryfly: Dryfly, library: MpiLibrary, tmp_path: Path, name: str
) -> None:
    source, target, file = tmp_path / "less.c", tmp_path / "less", tmp_path / "out.json"
    source.write_text(f'#include <mpi.h>\n{_LESS[name]}\n#include "{name}.c"\n')
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    subprocess.run([str(wrapper), f"-I{BENCHMARK}", str(source), "-o", str(target)], check=True)
    command = ("run", *WHERE, "-n", "3", "--", target, "-i", "1", "-m", "64:64")
    run = dryfly(*command, "--json", file)
    assert run.exit_status == 1
    assert "# data checked after timing: wrong at 64" in run.stdout
    assert "data that arrived was wrong" in run.stderr
    found = json.loads(file.read_text())
    assert (found["data"], found["wrong_sizes"]) == ("wrong", [64])
    assert dryfly(*command, "--check", "0").succeeded()


def test_the_file_has_what_the_table_has(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("an older one\n")
    command = ("run", *WHERE, "-N", "2", "--ppn", "2", "--", programs(BENCHMARK / "mbw_mr.c"))
    run = dryfly(*command, "-m", "8:16", "-i", "3", "-W", "4", "--json", file, "--digits", "6").succeeded()
    found = json.loads(file.read_text())
    assert (found["program"], found["ranks"], found["nodes"]) == ("mbw_mr", 4, 2)
    assert "MPICH" in found["library"]
    assert found["options"] == {
        "message_size": [8, 16], "iterations": 3, "warmup": 2, "window_size": 4, "pairs": 2, "validation": False,
        "check": True,
    }  # fmt: skip
    assert found["columns"] == ["size", "bandwidth_mb_per_s", "messages_per_s"]
    printed = benchmarks.read_rows(run.stdout)
    for row in found["rows"]:
        assert printed[row["size"]] == pytest.approx([row["bandwidth_mb_per_s"], row["messages_per_s"]], rel=1e-7)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_every_repetition_is_in_the_file_too(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    command = (
        "run",
        *WHERE,
        "-n",
        "2",
        "--",
        programs(BENCHMARK / "allreduce.c"),
        "-m",
        "8:16",
        "-i",
        "3",
        "-f",
        "--each",
    )
    run = dryfly(*command, "--json", file, "--digits", "6").succeeded()
    for row in json.loads(file.read_text())["rows"]:
        assert row["each"] == pytest.approx(benchmarks.read_each(run.stdout)[row["size"]], abs=1e-6)
        assert row["mean_us"] == pytest.approx(sum(row["each"]) / 3)
        assert row["iterations"] == 3


@pytest.mark.parametrize("name", ["latency", "alltoall", "put_latency", "gpcnet"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_timed(
    dryfly: Dryfly, programs: Programs, tmp_path: Path, name: str
) -> None:
    words = ("--congestors", "0") if name == "gpcnet" else ("-m", "8:8")
    for path in (tmp_path / "nowhere" / "out.json", tmp_path, Path("/dev/full")):
        run = dryfly("run", *WHERE, "-n", "2", "--", programs(BENCHMARK / f"{name}.c"), *words, "--json", path)
        assert run.exit_status == 2
        assert f"--json: {path}: accepted is a file that can be written" in run.stderr
        assert run.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("put_latency -s often", "accepted is flush, flush_local, lock, lock_all, pscw or fence"),
        ("put_latency -w shared", "accepted is allocate, create or dynamic"),
        ("put_latency -W 8", "-W: not of this benchmark"),
        ("put_bw -W 8 --fence-interval 9", "--fence-interval: accepted is at most the number of operations"),
        ("acc_latency --fence-interval 0", "--fence-interval: accepted is a whole number from 1"),
        ("latency_mt -t 2:3", "-t: accepted is R or S:R, 1 to 64 threads, R a multiple of S"),
        ("latency_mt -t 65", "-t: accepted is R or S:R"),
        ("multi_lat --slowest 0", "--slowest: accepted is a whole number from 1"),
        ("latency --slowest 1", "--slowest: not of this benchmark"),
        ("igather -f", "-f: not of this benchmark"),
        ("sync_pairs -p 2", "-p: there are not so many pairs"),
        ("overlap --check 2", "--check: accepted is 0 or 1"),
        ("gatherv --json", "--json: a value is missing"),
    ],
)
def test_bad_options_are_one_sentence(dryfly: Dryfly, programs: Programs, command: str, says: str) -> None:
    name, *words = command.split()
    run = dryfly("run", *WHERE, "-n", "2", "--", programs(BENCHMARK / f"{name}.c"), *words)
    assert run.exit_status == 2
    assert says in run.stderr
    assert run.stdout == ""


def test_the_slowest_pairs_are_named(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """Three pairs; percentiles are of pairs, so that with three of them half is the second, and 90 % the third."""
    file = tmp_path / "out.json"
    command = ("run", *WHERE, "-n", "6", "--", programs(BENCHMARK / "multi_lat.c"), "-m", "8:8", "-f", "--slowest", "5")
    run = dryfly(*command, "--json", file, "--digits", "6").succeeded()
    ((mean, least, half, ninety, ninety_nine, most),) = benchmarks.read_rows(run.stdout).values()
    slow = re.findall(r"^# slow 8: ([\d.]+) us, rank (\d) on (\w+) and rank (\d) on (\w+)$", run.stdout, flags=re.M)
    times = [float(row[0]) for row in slow]
    assert times == [most, half, least]
    assert ninety == ninety_nine == most
    assert mean == pytest.approx(sum(times) / 3, abs=1e-6)
    assert sorted((row[1], row[3]) for row in slow) == [("0", "3"), ("1", "4"), ("2", "5")]
    (row,) = json.loads(file.read_text())["rows"]
    assert [pair["hosts"] for pair in row["slowest"]] == [[row[2], row[4]] for row in slow]
    assert len({host for pair in row["slowest"] for host in pair["hosts"]}) == 6


def test_what_all_ranks_move_in_an_alltoall_is_a_column(dryfly: Dryfly, programs: Programs) -> None:
    command = ("run", *WHERE, "-n", "4", "--", programs(BENCHMARK / "alltoall.c"), "-m", "4096:4096", "-f")
    ((mean, _, _, _, gb_per_s),) = benchmarks.read_rows(dryfly(*command, "--digits", "6").succeeded().stdout).values()
    assert gb_per_s == pytest.approx(4 * 3 * 4096 / mean / 1e3, rel=1e-5)


def test_fewer_fences_take_less_time(dryfly: Dryfly, programs: Programs) -> None:
    command = ("run", *WHERE, "-n", "2", "--", programs(BENCHMARK / "put_latency.c"), "-m", "8:8", "-s", "fence")
    one, many = (
        benchmarks.read(dryfly(*command, "--fence-interval", number).succeeded().stdout)[8] for number in ("1", "100")
    )
    assert many < one / 5


def test_a_thread_waits_for_each_of_its_receivers_in_turn(dryfly: Dryfly, programs: Programs) -> None:
    """A round trip is one message each way, whoever answers and however late this computer lets a thread run."""
    command = ("run", *WHERE, "-n", "2", "--", programs(BENCHMARK / "latency_mt.c"), "-m", "8:8", "-t")
    plain = ("run", *WHERE, "-n", "2", "--", programs(BENCHMARK / "latency.c"), "-m", "8:8")
    alone = benchmarks.read(dryfly(*plain).succeeded().stdout)[8]
    for threads in ("1", "3", "2:4"):
        found = benchmarks.read(dryfly(*command, threads).succeeded().stdout)[8]
        assert found == pytest.approx(alone, rel=0.1)


# With Open MPI most rows were milliseconds: what a thread had spun within MPI counted as computing behind it.
@pytest.mark.parametrize("family", ["mpich", "openmpi"])
@pytest.mark.usefixtures("hogs")
def test_threads_beside_other_load_compute_no_longer_than_they_do(family: str, dryfly: Dryfly) -> None:
    job = ("--mpi", family, "--machine", "testbed", "-n", "2", "--compute", "measured", "--quiet")
    run = dryfly("run", *job, "--", BENCHMARK / "latency_mt.c", "-m", "256:4K").succeeded()
    assert max(benchmarks.read(run.stdout).values()) < 100


def test_ranks_that_share_a_nic_add_up_until_it_is_full(dryfly: Dryfly, programs: Programs) -> None:
    """As docs/guide/benchmarks.md has it: a NIC of Aurora carries 25 GB/s, and small messages are far below that."""
    found = {}
    for ranks in ("1", "4"):
        bound = ("--cpu-bind", "map_ldom:0", "--nic-bind", "map_nic:0")
        where = ("--machine", "aurora", "-N", "2", "--ppn", ranks, "--compute", "none", *bound)
        run = dryfly("run", *where, "--", programs(BENCHMARK / "sync_pairs.c"), "-m", "64:1M", "-i", "1").succeeded()
        found[ranks] = {size: row[1] for size, row in benchmarks.read_rows(run.stdout).items()}
    assert found["4"][64] == pytest.approx(4 * found["1"][64], rel=0.1)
    assert found["4"][2**20] < 25_000


def test_a_socket_carries_what_its_ranks_send_by_nics_of_their_own(dryfly: Dryfly, programs: Programs) -> None:
    """Off-socket bandwidth, as in docs/guide/benchmarks.md: four ranks with a NIC each are nearly four times one."""
    found = {}
    for ranks in ("1", "4"):
        bound = ("--cpu-bind", "map_ldom:0,0,0,0", "--nic-bind", "map_nic:0,1,2,3")
        where = ("--machine", "aurora", "-N", "2", "--ppn", ranks, "--compute", "none", *bound)
        few = ("-m", "1M:1M", "-i", "1", "--check", "0")
        run = dryfly("run", *where, "--", programs(BENCHMARK / "mbw_mr.c"), *few).succeeded()
        found[ranks] = benchmarks.read(run.stdout)[2**20]
    assert 3.5 < found["4"] / found["1"] <= 4


def test_compare_counts_one_sided_and_nonblocking_operations(dryfly: Dryfly, tmp_path: Path) -> None:
    where = ("compare", "--with", "mpich", "-N", "3", "-m", "64:128", "-i", "1", "-o", tmp_path / "kept")
    dryfly(*where, "--json", tmp_path / "out.json", "put_bw -W 4", "igather", limit_s=120).succeeded()
    put, gather = json.loads((tmp_path / "out.json").read_text())["benchmarks"]
    assert all(row["protocols"]["put"] == 4 for row in put["lines"][0]["counts"].values())
    assert all(row["messages"] == 2 for row in gather["lines"][0]["counts"].values())
