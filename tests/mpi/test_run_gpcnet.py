"""GPCNeT's tests as a real MPI program, and the skeleton of them that `dryfly predict gpcnet` runs."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Programs
from harness import ROOT

from dryfly.mpi.libraries import MpiLibrary
from dryfly.predict import ask
from dryfly.predict.question import Question

PROGRAM = ROOT / "programs" / "benchmark" / "gpcnet.c"
WHERE = ("--machine", "aurora", "--compute", "none", "--software", "none", "--quiet")
FEW = ("--warmup", "20", "--latency-iterations", "20", "--bandwidth-iterations", "4", "--allreduces", "20")
TESTS = ("latency", "bandwidth", "allreduce")
ALL = ("--tests", "all", "--alltoalls", "4", "--pass", "8", *FEW)

OF_LOAD_TEST = {
    "RR Two-sided Lat (8 B)": "usec",
    "RR Two-sided BW+Sync (131072 B)": "MiB/s/rank",
    "Multiple Allreduce (8 B)": "usec",
}
OF_NETWORK_TEST = {
    "RR Two-sided Lat (8 B)": "usec",
    "RR Get Lat (8 B)": "usec",
    "RR Two-sided BW (131072 B)": "MiB/s/rank",
    "RR Put BW (131072 B)": "MiB/s/rank",
    "RR Two-sided BW+Sync (131072 B)": "MiB/s/rank",
    "Nat Two-sided BW (131072 B)": "MiB/s/rank",
    "Multiple Allreduce (8 B)": "usec",
    "Multiple Alltoall (4096 B)": "MiB/s/rank",
}
CONGESTORS = ("Alltoall (4096 B)", "Two-sided Incast (4096 B)", "Put Incast (4096 B)", "Get Bcast (4096 B)")
ALONE, CONGESTION = "Isolated Network Tests", "Isolated Congestion Tests"
BESIDE = "Network Tests running with Congestion Tests"
FACTORS = f"{BESIDE} - Key Results"

Table = dict[str, tuple[float, float, str]]


def tables_of(output: str) -> dict[str, Table]:
    """As a reader of GPCNeT's output has them, which has seen nothing of ours: by title, then by name of the test."""
    tables: dict[str, Table] = {}
    title = ""
    for line in output.splitlines():
        if line[:1] not in ("|", "+"):
            continue
        assert len(line) == 80, line
        head = re.fullmatch(r"\|\s+(\S.*Tests.*?)\s+\|", line)
        row = re.fullmatch(
            r"\|\s+(?P<name>[A-Z][^|]* \(\d+ B\)) \|"
            r"\s+(?P<average>\d+\.\d)(?P<x>X?) \|\s+(?P<most>\d+\.\d)(?P=x) \|(?:\s+(?P<unit>usec|MiB/s/rank) \|)?",
            line,
        )
        if head is not None:
            title = head[1]
            tables[title] = {}
        elif row is not None:
            unit = row["unit"] or row["x"]
            tables[title][row["name"]] = (float(row["average"]), float(row["most"]), unit)
    return tables


def units_of(table: Table) -> dict[str, str]:
    return {name: unit for name, (_, _, unit) in table.items()}


def require_factors(tables: dict[str, Table]) -> None:
    for name, (mean, most, unit) in tables[FACTORS].items():
        assert unit == "X"
        alone, beside = tables[ALONE][name], tables[BESIDE][name]
        worse, better = (alone, beside) if alone[2] == "MiB/s/rank" else (beside, alone)
        assert (mean, most) == pytest.approx((worse[0] / better[0], worse[1] / better[1]), abs=0.0501)


# A draw for each Get: two of a NIC may meet in one queue, in one ring and not in the other. And skeletons on level
# links have a part of what queues cost only, so that they are up to 18 % faster than the program.
_ALL_AT_ONCE = ("--set", "nic.rendezvous_queues=0")


def hold_skeleton_against_program(
    dryfly: Dryfly, program: Path, folder: Path, *, nodes: int, ppn: int, limit_s: float
) -> dict[str, Any]:
    file = folder / "gpcnet.json"
    job = ("-N", str(nodes), "--ppn", str(ppn))
    run = dryfly(
        "run", *WHERE, *job, *_ALL_AT_ONCE, "--", program, *FEW, "--pass", "8", "--json", str(file), limit_s=limit_s
    ).succeeded()
    assert run.stdout.count("RR Two-sided Lat (8 B)") == 3  # alone, beside congestors, and the factor
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert found["wrong"] == 0
    few = ("warmup=20", "latency_iterations=20", "bandwidth_iterations=4", "allreduces=20", "pass=8")
    parameters = tuple((name, value) for name, _, value in (word.partition("=") for word in few))
    answer = ask.ask(
        Question(workload="gpcnet", nodes=nodes, ppn=ppn, parameters=(("congestors", "40 %"), *parameters))
    )
    for load, prefix in (("isolated", ""), ("congested", "congested_")):
        for test in TESTS:
            unit, scale = ("bytes_per_s", 2.0**-20) if test == "bandwidth" else ("ps", 1e-6)
            predicted = answer.figures[f"{prefix}{test}_mean_{unit}"] * scale
            assert predicted == pytest.approx(found[load][test]["mean"], rel=0.15), (load, test)
    return found


def test_at_64_ranks_the_skeleton_takes_the_time_of_the_program(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    found = hold_skeleton_against_program(dryfly, programs(PROGRAM), tmp_path, nodes=32, ppn=2, limit_s=240)
    assert (found["ranks"], found["congestor_nodes"]) == (64, 12)


@pytest.mark.slow
def test_at_256_ranks_the_skeleton_takes_the_time_of_the_program(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    found = hold_skeleton_against_program(dryfly, programs(PROGRAM), tmp_path, nodes=64, ppn=4, limit_s=600)
    assert (found["ranks"], found["congestor_nodes"]) == (256, 25)


def test_what_reads_output_of_the_network_load_test_reads_this(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "20", "--ppn", "1", "--", programs(PROGRAM), *FEW, "--pass", "8")
    tables = tables_of(dryfly(*command, "--json", str(file), limit_s=120).succeeded().stdout)
    assert list(tables) == [ALONE, CONGESTION, BESIDE, FACTORS]
    assert units_of(tables[ALONE]) == units_of(tables[BESIDE]) == OF_LOAD_TEST
    assert units_of(tables[CONGESTION]) == dict.fromkeys(CONGESTORS, "MiB/s/rank")
    assert list(tables[FACTORS]) == list(OF_LOAD_TEST)
    require_factors(tables)
    found = json.loads(file.read_text(encoding="utf-8"))
    for name, key in zip(OF_LOAD_TEST, TESTS, strict=True):
        assert tables[ALONE][name][0] == pytest.approx(found["isolated"][key]["mean"], abs=0.0501)
        assert tables[BESIDE][name][1] == pytest.approx(found["congested"][key]["p99"], abs=0.0501)
    # A NIC receives or sends 25 GB/s for all others at once.
    others = found["congestor_nodes"] / 4 - 1
    assert all(0 < found["congestors"][kind]["mean"] < 25e9 / 2**20 / others for kind in ("incast", "put_incast"))


def test_all_of_the_network_test_on_all_nodes(dryfly: Dryfly, programs: Programs) -> None:
    command = ("run", *WHERE, "-N", "5", "--ppn", "1", "--", programs(PROGRAM), *FEW, "--tests", "network")
    tables = tables_of(dryfly(*command, limit_s=120).succeeded().stdout)
    assert list(tables) == [ALONE]
    assert units_of(tables[ALONE]) == OF_NETWORK_TEST
    # A get is there and back, a message there: half of an exchange of two gets is longer than that of two messages.
    assert tables[ALONE]["RR Get Lat (8 B)"][0] > tables[ALONE]["RR Two-sided Lat (8 B)"][0]
    # The barrier is in the time.
    synchronised, alone = (tables[ALONE][f"RR Two-sided {name} (131072 B)"][0] for name in ("BW+Sync", "BW"))
    assert synchronised < alone < 25e9 / 2**20


@pytest.mark.slow
def test_the_same_command_gives_the_same_tables(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """Of all tests, natural rings too, beside congestors."""
    command = ("run", *WHERE, "-N", "20", "--ppn", "1", "--", programs(PROGRAM), *ALL)
    files = [tmp_path / name for name in ("first.json", "second.json")]
    said = [dryfly(*command, "--json", str(file), limit_s=120).succeeded().stdout for file in files]
    assert said[0] == said[1]
    assert files[0].read_text(encoding="utf-8") == files[1].read_text(encoding="utf-8")
    assert dryfly(*command, "--check", "0", limit_s=120).succeeded().stdout == said[0]
    tables = tables_of(said[0])
    assert units_of(tables[ALONE]) == units_of(tables[BESIDE]) == OF_NETWORK_TEST
    assert list(tables[FACTORS]) == list(OF_NETWORK_TEST)
    require_factors(tables)
    assert json.loads(files[0].read_text(encoding="utf-8"))["wrong"] == 0


def rates_of_rings(dryfly: Dryfly, program: Path, *job: str) -> tuple[float, float]:
    """Of two-sided bandwidth: natural and random."""
    where = ("--machine", "testbed", *WHERE[2:], "--ppn", "1", *job)
    command = ("run", *where, "--", program, *FEW, "--alltoalls", "1", "--tests", "network")
    table = tables_of(dryfly(*command, limit_s=120).succeeded().stdout)[ALONE]
    return table["Nat Two-sided BW (131072 B)"][0], table["RR Two-sided BW (131072 B)"][0]


def test_on_one_switch_a_natural_ring_is_as_fast_as_a_random_one(dryfly: Dryfly, programs: Programs) -> None:
    one_switch = ("topology.group.compute.groups=1", "topology.group.compute.switches=1", "job.nodes_max=8")
    sets = [*_ALL_AT_ONCE, *(word for field in one_switch for word in ("--set", field))]
    natural, random = rates_of_rings(dryfly, programs(PROGRAM), "-N", "8", *sets)
    assert natural > 0.99 * random
    # Three nodes are each other's neighbours in every ring.
    natural, random = rates_of_rings(dryfly, programs(PROGRAM), "-N", "3", *sets)
    assert natural == pytest.approx(random, rel=0.01)


@pytest.mark.slow
def test_a_natural_ring_has_neighbours_near_each_other(dryfly: Dryfly, programs: Programs) -> None:
    """On four groups of eight nodes 4 of its 32 pairs are in two groups, of a random ring's 25 on average."""
    natural, random = rates_of_rings(dryfly, programs(PROGRAM), "-N", "32", *_ALL_AT_ONCE)
    assert natural > 1.2 * random


def test_no_congestor_runs_beside_the_isolated_tests() -> None:
    """In the skeleton, as in the program, where a barrier is between the two: what is isolated is what it is alone.

    Ranks that an allreduce has let go in an order begin the next one so, all turns alike: which order that is decides
    a p99, and differs with where they were before. So it is the mean of three seeds that is compared."""
    wanted = re.compile(r"(latency|bandwidth|allreduce)_(mean|p99)_(ps|bytes_per_s)")

    def isolated(load: str) -> dict[str, float]:
        few = (("congestors", "40 %"), ("warmup", "20"), ("latency_iterations", "20"), ("bandwidth_iterations", "4"))
        parameters = (*few, ("allreduces", "20"), ("pass", "64"), ("load", load))
        answers = [
            ask.ask(Question(workload="gpcnet", nodes=64, ppn=4, seed=seed, parameters=parameters)).figures
            for seed in (1, 2, 3)
        ]
        names = [name for name in answers[0] if wanted.fullmatch(name)]
        return {name: sum(figures[name] for figures in answers) / len(answers) for name in names}

    both, alone = isolated("both"), isolated("isolated")
    assert len(alone) == 6
    assert both == pytest.approx(alone, rel=0.05)


def test_without_congestors_all_nodes_run_the_tests(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "5", "--ppn", "1", "--", programs(PROGRAM), *FEW, "--congestors", "0")
    dryfly(*command, "--json", str(file), limit_s=120).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["congestor_nodes"] == 0
    assert "congested" not in found
    assert found["isolated"]["latency"]["mean"] > 1


def test_a_budget_is_made_into_counts_that_are_the_same_each_time(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "5", "--ppn", "1", "--", programs(PROGRAM), "--congestors", "0", "--pass", "8")
    said = [dryfly(*command, "--budget", "1", "--json", str(file), limit_s=120).succeeded().stdout for _ in range(2)]
    assert said[0] == said[1]
    latency, bandwidth, allreduce = json.loads(file.read_text(encoding="utf-8"))["iterations"]
    counts = f"{latency} exchanges of 8 B behind {latency} that do not count, {bandwidth} of 131072 B, "
    assert said[0].startswith(f"budget of 1 s: {counts}{allreduce} allreduces\n")
    # A third of a second: 5 ranks, 2 messages of 20 us, twice; 16 of 20 + 64 * 4 * 0.45 us and 3 of 20; 3 of 20.
    assert (latency, bandwidth, allreduce) == (833, 28, 1111)
    refused = dryfly(*command, "--budget", "1", "--warmup", "5")
    assert refused.exit_status == 2


@pytest.mark.slow
def test_a_budget_is_for_all_tests_and_for_the_congestors_alone(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "20", "--ppn", "1", "--", programs(PROGRAM), "--tests", "all", "--pass", "8")
    said = [dryfly(*command, "--budget", "2", "--json", str(file), limit_s=240).succeeded().stdout for _ in range(2)]
    assert said[0] == said[1]
    # Of 2 s, 11 of 12 parts for 8 tests, over 2.4: 95.5 ms each. 12 ranks, as above; 16 of 20 + 64 * 4 * 0.45 us and 4
    # of 20; 4 of 20; of an alltoall 11 of 20 + 2 * 4 * 0.45 us. A part, 167 ms, for passes of 9 times 2 + 3 such.
    counts = "99 exchanges of 8 B behind 99 that do not count, 2 of 131072 B, 99 allreduces, 29 alltoalls, 156 passes"
    assert said[0].startswith(f"budget of 2 s: {counts} of each congestor alone\n")
    found = json.loads(file.read_text(encoding="utf-8"))
    assert (found["iterations"], found["alltoalls"], found["passes"]) == ([99, 2, 99], 29, 156)
    for count in ("--alltoalls", "--passes"):
        assert dryfly(*command, "--budget", "1", count, "5").exit_status == 2


def test_congestors_run_with_open_mpi_too(dryfly: Dryfly, tmp_path: Path) -> None:
    file = tmp_path / "gpcnet.json"
    command = ("run", *WHERE, "-N", "10", "--ppn", "1", "--mpi", "openmpi", "--", str(PROGRAM), *ALL)
    dryfly(*command, "--congestors", "0.8", "--json", str(file), limit_s=120).succeeded()
    found = json.loads(file.read_text(encoding="utf-8"))
    assert found["congestor_nodes"] == 8
    assert found["wrong"] == 0
    assert set(TESTS) < set(found["factors"])
    assert all(factor["mean"] > 0.5 for factor in found["factors"].values())


LESS_SENT = "MPI_Isend(b, n, t, to, tag, c, r) (MPI_Isend)(b, (n)-1, t, to, tag, c, r)"
LESS_PUT = "MPI_Put(b, n, t, to, at, m, u, w) (MPI_Put)(b, (n)-1, t, to, at, (m)-1, u, w)"
LESS_GOT = "MPI_Get(b, n, t, to, at, m, u, w) (MPI_Get)(b, (n)-1, t, to, at, (m)-1, u, w)"
LESS_EXCHANGED = "MPI_Alltoall(b, n, t, a, m, u, c) (MPI_Alltoall)(b, (n)-1, t, a, (m)-1, u, c)"


@pytest.mark.parametrize(
    ("less", "nodes", "words"),
    [
        (LESS_SENT, "2", ("--congestors", "0")),
        (LESS_PUT, "2", ("--tests", "network")),
        (LESS_GOT, "2", ("--tests", "network")),
        (LESS_EXCHANGED, "2", ("--tests", "network")),
        (LESS_PUT, "10", ("--congestors", "0.8", "--pass", "2")),
        (LESS_GOT, "10", ("--congestors", "0.8", "--pass", "2")),
    ],
    ids=["sent", "put", "got", "exchanged", "put by congestors", "got by congestors"],
)
def test_bytes_that_do_not_arrive_are_noticed(
    dryfly: Dryfly, library: MpiLibrary, tmp_path: Path, less: str, nodes: str, words: tuple[str, ...]
) -> None:
    """The same program, the last byte of each message left out."""
    source, target = tmp_path / "less.c", tmp_path / "less"
    source.write_text(f'#include <mpi.h>\n#define {less}\n#include "gpcnet.c"\n')
    wrapper = library.wrapper("mpicc")
    assert wrapper is not None
    subprocess.run([str(wrapper), f"-I{PROGRAM.parent}", str(source), "-o", str(target)], check=True)
    run = dryfly("run", "-n", nodes, "--quiet", "--", target, *words, "--bandwidth-iterations", "1", *FEW[:4])
    assert run.exit_status == 1
    assert "data that arrived was wrong" in run.stderr


def test_a_share_that_leaves_too_few_nodes_is_refused(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly("run", "-n", "4", "--quiet", "--", programs(PROGRAM))
    assert run.exit_status == 2
    assert "--congestors: accepted is a share that leaves 2 nodes for the tests" in run.stderr
    assert "the default of 0.4 does from 20 nodes on, and these are 4; 0.8 does from 10 on" in run.stderr
    run = dryfly("run", "-n", "12", "--quiet", "--", programs(PROGRAM), "--congestors", "0.5")
    assert run.exit_status == 2
    assert "; 0.5 does from 16 nodes on, and these are 12\n" in run.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--rings 0", "--rings: accepted is a whole number from 1"),
        ("--check 2", "--check: accepted is 0 or 1"),
        ("--tests both", "--tests: accepted is load, network or all"),
        ("--tests network --congestors 0.4", "--congestors: accepted with --tests network is 0"),
        ("--budget", "--budget: a value is missing"),
    ],
)
def test_words_that_are_wrong_are_refused(dryfly: Dryfly, programs: Programs, words: str, says: str) -> None:
    run = dryfly("run", "-n", "2", "--quiet", "--", programs(PROGRAM), *words.split())
    assert run.exit_status == 2
    assert says in run.stderr
