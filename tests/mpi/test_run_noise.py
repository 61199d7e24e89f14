"""Runs with noise: they repeat exactly, and lose what closed forms say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Dryfly
from harness import MICRO, ROOT

from dryfly.base.paths import GENERATOR, native
from dryfly.base.units import time_text
from dryfly.case.bind import bind
from dryfly.case.case import Case
from dryfly.machine.names import NodeNames

# Works for a fixed number of clock readings, each of which costs host.clock_read, and then meets the others.
_PROGRAM = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double mine = 1, all = 0, sum = 0;
  for (int round = 0; round < atoi(argv[1]); ++round) {
    for (int i = 0; i < atoi(argv[2]); ++i) sum += MPI_Wtime();
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return sum < 0;
}
"""
_READING_S = 50e-9
_RUN = ("--compute", "none", "--set", "host.clock_read=50 ns")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "rounds.c"
    file.write_text(_PROGRAM)
    return file


def test_a_run_with_noise_repeats_and_another_seed_is_another_run(dryfly: Dryfly, program: Path) -> None:
    def once(*options: str) -> tuple[str, float, dict[str, object]]:
        run = dryfly("run", "-N", "4", "--ppn", "2", *_RUN, *options, "--", program, "20", "2000").succeeded()
        return run.fingerprint, run.results["virtual_time_s"], run.results["noise"]

    first = once("--noise", "machine")
    assert once("--noise", "machine") == first
    assert first[2]["detours"]
    assert once("--noise", "machine", "--seed", "2")[:2] != first[:2]
    silent = once()
    assert silent[1] < first[1]
    assert silent[2] == {
        "of": "none", "detours": 0, "interrupted_s": 0.0, "delayed_s": 0.0, "start_skew_s": 0.0, "last_start_s": 0.0,
        "mean_start_s": 0.0,
    }  # fmt: skip


def test_all_wait_for_the_one_node_that_has_a_tenth_of_its_time_taken(
    dryfly: Dryfly, program: Path, tmp_path: Path
) -> None:
    noise = tmp_path / "noise.toml"
    noise.write_text('[[detour]]\nevery = "1 ms"\nlength = "100 us"\nnode = "t1"\n')
    times = {}
    for given in ("none", str(noise)):
        command = ("run", "-N", "2", *_RUN, "--noise", given, "--", program, "5", "200000")
        run = dryfly(*command).succeeded()
        times[given] = run.results["virtual_time_s"]
        taken = [row["interrupted_s"] + row["delayed_s"] for row in run.results["ranks_detail"]]
    # Each round is 10 ms of work, of which every millisecond of the node's leaves 900 us: W / 0.9, give or take the
    # detour that the run's end may lie before or behind.
    work_s = 5 * 200_000 * _READING_S
    assert times[str(noise)] - times["none"] == pytest.approx(work_s / 9, abs=110e-6)
    assert taken[0] == 0
    assert taken[1] == pytest.approx(work_s / 9, abs=110e-6)


def test_an_allreduce_of_many_ranks_loses_more_than_one_ranks_share(
    dryfly: Dryfly, program: Path, tmp_path: Path
) -> None:
    noise = tmp_path / "noise.toml"
    noise.write_text('[[detour]]\nevery = "2 ms"\nlength = "50 us"\ninstants = "random"\n')
    runs = {
        given: dryfly("run", "-N", "16", *_RUN, "--noise", given, "--", program, "60", "2000").succeeded().results
        for given in ("none", str(noise))
    }
    lost = runs[str(noise)]["virtual_time_s"] - runs["none"]["virtual_time_s"]
    own = [row["interrupted_s"] + row["delayed_s"] for row in runs[str(noise)]["ranks_detail"]]
    # A round is some 100 us, in which each of 16 ranks has a detour with a chance of 5 %, and any of them with one of
    # 1 - 0.95^16 = 56 %: 11 times what a rank meets itself. Half of that is asked for.
    assert lost > 5 * sum(own) / len(own)
    assert lost > max(own)


def test_with_shared_memory_noise_repeats_too(dryfly: Dryfly, program: Path) -> None:
    command = ("run", "-N", "2", "--ppn", "4", "--on-node", "shared", *_RUN, "--noise", "machine", "--", program)
    first, second = (dryfly(*command, "10", "2000").succeeded() for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.results["virtual_time_s"] == second.results["virtual_time_s"]


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_rank_that_goes_on_behind_a_detour_lets_the_others_of_its_node_come_first(
    dryfly: Dryfly, tmp_path: Path, seed: str
) -> None:
    """A detour between any two looks: the rank's node has come to where it goes on only when the others have."""
    noise = tmp_path / "noise.toml"
    noise.write_text('[[detour]]\nevery = "10 us"\nlength = "3 us"\ninstants = "random"\n', encoding="utf-8")
    run = (
        "run",
        "--quiet",
        "--machine",
        "crusher",
        "-N",
        "2",
        "--ppn",
        "4",
        "--compute",
        "none",
        "--on-node",
        "shared",
    )
    said = (
        dryfly(*run, "--noise", str(noise), "--seed", seed, "--", ROOT / "programs" / "check" / "node_aware.c")
        .succeeded()
        .stdout
    )
    assert "node size 4, failures 0" in said


def test_several_seeds_give_medians_and_intervals(dryfly: Dryfly) -> None:
    command = ("run", "-N", "2", "--compute", "none", "--noise", "machine", "--seeds", "6", "--")
    run = dryfly(*command, MICRO / "pingpong.c", "count=200").succeeded()
    assert run.results["seeds"] == [1, 2, 3, 4, 5, 6]
    assert run.results["confidence"] == 0.95  # of six values all but 2/64 have the median between them
    time = run.results["figures"]["virtual time"]
    values = [each["result"]["virtual_time_s"] for each in run.results["runs"]]
    assert time["values"] == values
    assert time["interval"] == [min(values), max(values)]
    assert len(set(values)) > 1
    assert run.results["without_noise"]["result"]["noise"]["of"] == "none"
    assert "6 seeds, 1 to 6" in run.stdout
    assert "seed 6: virtual time" in run.stderr


def test_the_table_of_several_seeds_is_there_when_quiet(dryfly: Dryfly) -> None:
    command = ("run", "-N", "2", "--compute", "none", "--seeds", "2", "--quiet")
    pingpong = ("--", MICRO / "pingpong.c", "count=5")
    run = dryfly(*command, *pingpong).succeeded()
    assert re.search(r"^ *virtual time +\d", run.stdout, re.MULTILINE)
    assert "2 seeds, 1 to 2" in run.stdout
    assert run.stderr == ""
    piped = dryfly(*command, "--json", "-", *pingpong).succeeded()
    assert json.loads(piped.stdout)["seeds"] == [1, 2]
    assert piped.stderr == ""


def test_what_cannot_be_used_is_said_before_the_start(dryfly: Dryfly, tmp_path: Path) -> None:
    for words, message in (
        (("--noise", "nothing"), "--noise nothing cannot be read"),
        (("--seeds", "1"), "--seeds 1: accepted is 2 to 10000"),
        (("--seeds", "2", "--trace", str(tmp_path / "t")), "--trace is of one run, and --seeds 2 makes several"),
        (("-j", "2"), "--jobs 2 is of several runs: give --seeds N too"),
        (("--seeds", "2", "-j", "0"), "--jobs 0: accepted is 1 or more"),
        (("--seeds", "2", "-j", "2", "--compute", "measured"), "runs beside one another would change what is measured"),
    ):
        run = dryfly("run", *words, "--", MICRO / "pingpong.c")
        assert run.exit_status == 2, words
        assert message in run.stderr


_STRONG = '[[detour]]\nevery = "200 us"\ninstants = "random"\nlength = ["2 us", "10 us"]\n'


def _ring_of_ranks(dryfly: Dryfly, noise: str, *arguments: str) -> tuple[float, float]:
    """Mean and 99 %, in us."""
    command = ("run", "--machine", "aurora", "-N", "4", "--ppn", "4", "--compute", "none", "--noise", noise)
    words = dryfly(*command, "--software", "none", "--", MICRO / "ring.c", *arguments).succeeded().stdout.split()
    return float(words[words.index("mean") + 1]), float(words[words.index("p99") + 1])


def _ring_of_pattern(tmp_path: Path, noise: str, *arguments: str) -> tuple[float, float]:
    """Of the same ranks, on the same NICs."""
    bound = bind(Case(machine="aurora", nodes=4, ppn=4, compute="none", noise=noise))
    names = NodeNames(bound.machine)
    spec, ranks = tmp_path / "spec", tmp_path / "ranks"
    spec.write_text(bound.spec)
    ranks.write_text("".join(f"{names.number(place.node)}.{place.nic}\n" for place in bound.placement.ranks))
    command = [str(native(GENERATOR)), str(spec), "ring", f"ranks={ranks}", *arguments]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return answer["mean_ps"] * 1e-6, answer["p99_ps"] * 1e-6


def test_a_pattern_without_processes_has_the_noise_that_ranks_have(dryfly: Dryfly, tmp_path: Path) -> None:
    """Rings of 16 ranks. What a pattern leaves out (polls, readings of the clock) is 1 % of an exchange; detours take a
    fifth of it."""
    noise = tmp_path / "noise.toml"
    noise.write_text(_STRONG)
    arguments = ("bytes=8", "rings=3", "warmup=50", "count=300")
    of_ranks = {given: _ring_of_ranks(dryfly, given, *arguments) for given in ("none", str(noise))}
    of_pattern = {given: _ring_of_pattern(tmp_path, given, *arguments) for given in ("none", str(noise))}
    for given in of_ranks:
        assert of_pattern[given][0] == pytest.approx(of_ranks[given][0], rel=0.02)
    lost = {kind: figures[str(noise)][0] - figures["none"][0] for kind, figures in
            (("ranks", of_ranks), ("pattern", of_pattern))}  # fmt: skip
    assert lost["ranks"] > 0.15 * of_ranks["none"][0]
    assert lost["pattern"] == pytest.approx(lost["ranks"], rel=0.1)
    assert of_pattern[str(noise)][1] == pytest.approx(of_ranks[str(noise)][1], rel=0.1)
    assert _ring_of_pattern(tmp_path, str(noise), *arguments) == of_pattern[str(noise)]


def test_a_report_says_what_noise_has_cost(dryfly: Dryfly, program: Path, tmp_path: Path) -> None:
    noise = tmp_path / "noise.toml"
    noise.write_text(_STRONG)
    runs = {}
    for name, given in (("noisy", str(noise)), ("silent", "none")):
        folder = tmp_path / name
        flags = ("--noise", given, "--record", folder)
        runs[name] = dryfly("run", "-N", "8", *_RUN, *flags, "--", program, "20", "2000").succeeded().results
    alone, page = tmp_path / "alone.html", tmp_path / "page.html"
    dryfly("report", tmp_path / "noisy", "-o", alone).succeeded()
    assert "run the same command with --noise none --seed 1" in alone.read_text()
    dryfly("report", tmp_path / "noisy", "--silent", tmp_path / "silent", "-o", page).succeeded()
    shown = page.read_text()
    assert "What noise has cost" in shown
    assert "of the additional waiting is in collectives, 100% in MPI_Allreduce" in shown
    lost = runs["noisy"]["virtual_time_s"] - runs["silent"]["virtual_time_s"]
    assert f"The run lost {time_text(lost * 1e12)} of" in shown
    for name, more, variables in (
        ("other", ("--software", "none"), {}),
        ("set", ("--set", "host.match=200 ns"), {}),
        ("setting", (), {"FI_CXI_RDZV_THRESHOLD": "2048"}),
    ):
        flags = (*_RUN, *more, "--record", tmp_path / name)
        dryfly("run", "-N", "8", *flags, "--", program, "20", "2000", environment=variables).succeeded()
    dryfly("report", tmp_path / "silent", "-o", page).succeeded()
    assert "What noise has cost" not in page.read_text()
    for words, message in (
        (("silent", "noisy"), "the run of the report has no noise to compare"),
        (("noisy", "noisy"), "this run has noise"),
        (("noisy", "nothing"), "is no recorded run; run the same command with --noise none"),
        (("noisy", "other"), "another software.table than the run of the report has: none, not mpich"),
        (("noisy", "set"), "another host.match_ps than the run of the report has: 200000, not 100000"),
        (("noisy", "setting"), "another settings.FI_CXI_RDZV_THRESHOLD than the run of the report has: 2048, not none"),
    ):
        ended = dryfly("report", tmp_path / words[0], "--silent", tmp_path / words[1], "-o", page)
        assert ended.exit_status == 2
        assert message in ended.stderr


def test_a_late_start_is_no_amplified_detour(dryfly: Dryfly, program: Path, tmp_path: Path) -> None:
    """Detours of 10 ns in a run that its start skew alone makes longer."""
    noise = tmp_path / "noise.toml"
    noise.write_text('start_skew = "10 us"\n[[detour]]\nevery = "100 us"\nlength = "10 ns"\n')
    flags = ("-N", "4", *_RUN, "--noise", noise)
    run = dryfly("run", *flags, "--seeds", "2", "--", program, "3", "2000").succeeded().results
    for one in run["runs"]:
        counted = one["result"]["noise"]
        assert 0 < counted["mean_start_s"] < counted["last_start_s"] <= counted["start_skew_s"] == 1e-5
    cost = run["noise_cost"]
    assert 0 < cost["lost_s"] <= cost["last_start_s"] + 0.3e-6
    assert "by which the last rank left MPI_Init late" in cost["text"]
    assert cost["lost_s"] > 3 * cost["from_a_rank_s"]
    assert cost["amplified"] is None or cost["amplified"] < 2
    for name, more in (("noisy", flags), ("silent", ("-N", "4", *_RUN))):
        dryfly("run", *more, "--record", tmp_path / name, "--", program, "3", "2000").succeeded()
    dryfly("report", tmp_path / "noisy", "--silent", tmp_path / "silent", "-o", tmp_path / "page.html").succeeded()
    page = (tmp_path / "page.html").read_text()
    assert "by which the last rank left MPI_Init late" in page
    assert "left MPI_Init late</t" in page


@pytest.mark.slow
def test_seeds_beside_one_another_give_what_they_give_one_by_one(dryfly: Dryfly, program: Path, tmp_path: Path) -> None:
    flags = ("-N", "2", *_RUN, "--noise", "machine", "--seeds", "6")
    found = []
    for jobs in ("1", "3"):
        run = dryfly("run", *flags, "-j", jobs, "--", program, "3", "2000").succeeded()
        found.append([run.results[name] for name in ("seeds", "figures", "noise_cost", "figures_without_noise")])
    assert found[0] == found[1]
    file, page = tmp_path / "seeds.json", tmp_path / "seeds.html"
    file.write_text(
        json.dumps(dryfly("run", *flags, "--", MICRO / "latency.c", "largest=64", "count=20").succeeded().results)
    )
    dryfly("report", file, "-o", page).succeeded()
    assert "Virtual time of each seed" in page.read_text()
    assert "By message size" in page.read_text()
