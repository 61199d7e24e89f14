"""Samples of long skeletons against all of them: the true time lies within the bound that is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly

HPL = ("hpl", "--model", "skeleton", "--ppn", "6", "--level", "latency", "n=200000", "nb=384", "grid=48x64")
# So many ranks are run whole, unless a sample is asked for.
SAMPLED = "stretches=24"
SHORT_ALLTOALL = ("alltoall", "--ppn", "4", "bytes=4KiB", SAMPLED)
# Messages are a fifth of a step of this one, so that its sample errs by what the test would see.
HACC = ("hacc", "--ppn", "8", "particle_work=0.2 us", "part=4 MiB")
HACC_SAMPLED = "sample=20"
AMRWIND = ("amrwind", "--ppn", "4", "grid=64x32x1", "local=32x32x32", "part=1 MiB")
# As of the other two, messages are a part of a step that shows.
LAMMPS = ("lammps", "--ppn", "8", "atom_work=0.1 us", "steps=2", "part=1 MiB")
LONG_ALLTOALL = ("alltoall", "--ppn", "4", "bytes=64KiB", SAMPLED)


def predict(dryfly: Dryfly, folder: Path, *words: str) -> dict[str, Any]:
    answer = folder / "answer.json"
    dryfly("predict", *words, "--nodes", "512", "--json", str(answer), limit_s=1800.0).succeeded()
    content: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return content


@pytest.mark.parametrize("seed", ["1", "2", "3", "4"])
def test_a_sample_of_an_alltoall_is_within_its_bound(dryfly: Dryfly, tmp_path: Path, seed: str) -> None:
    """It takes less among the ranks of a switch, at both ends of all distances, and more when ranks have drifted."""
    answers = []
    for words in ((SAMPLED,), ("full=1",)):
        file = tmp_path / "answer.json"
        dryfly("predict", "alltoall", "--nodes", "64", "--ppn", "16", "bytes=1KiB", "--seed", seed, *words, "--json",
               str(file)).succeeded()  # fmt: skip
        answers.append(json.loads(file.read_text(encoding="utf-8")))
    sample, whole = answers
    assert (sample["sampled"], whole["sampled"]) == (True, False)
    error = sample["virtual_time_s"] / whole["virtual_time_s"] - 1
    assert abs(error) <= sample["error_bound"] <= 0.05, f"{error:+.4f} beyond {sample['error_bound']:.4f}"


@pytest.mark.parametrize(
    ("nodes", "ppn", "seed"),
    [
        pytest.param("60", "16", "1", marks=pytest.mark.slow),
        pytest.param("60", "16", "2", marks=pytest.mark.slow),
        ("100", "8", "3"),
    ],
)
def test_a_sample_of_an_alltoall_in_which_ranks_drift_apart_is_within_its_bound(
    dryfly: Dryfly, tmp_path: Path, nodes: str, ppn: str, seed: str
) -> None:
    """They have drifted before what counts of its stretches, so that these neither miss that nor have it twice."""
    file = tmp_path / "answer.json"
    asked = ("predict", "alltoall", "--nodes", nodes, "--ppn", ppn, "--place", "random", "bytes=256KiB", "--seed", seed)
    dryfly(*asked, "--json", str(file)).succeeded()
    whole = json.loads(file.read_text(encoding="utf-8"))
    assert not whole["sampled"], "so few ranks are run whole"
    dryfly(*asked, SAMPLED, "--json", str(file)).succeeded()
    sample = json.loads(file.read_text(encoding="utf-8"))
    error = sample["virtual_time_s"] / whole["virtual_time_s"] - 1
    assert sample["sampled"]
    assert abs(error) <= sample["error_bound"] < 0.1, f"{error:+.4f} beyond {sample['error_bound']:.4f}"


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize("local", ["144x192x288", "48x48x48"])
def test_a_sample_of_hacc_is_within_its_bound(dryfly: Dryfly, tmp_path: Path, local: str, seed: str) -> None:
    """All of it messages, long and short ones; places of a line wait, and samples of few turns take too long. Long ones
    are of NICs as they were when the limit was set: with queues of Gets one is at 0.5015, its error 3.3 %."""
    file = tmp_path / "answer.json"
    answers = []
    nic = ("--set", "nic.rendezvous_queues=0") if local == "144x192x288" else ()
    for sample in ("0", "8"):
        dryfly("predict", "hacc", "--nodes", "32", "--ppn", "16", *nic, f"local={local}", "particle_work=0 s",
               "part=4 MiB", f"sample={sample}", "--seed", seed, "--json", str(file)).succeeded()  # fmt: skip
        answers.append(json.loads(file.read_text(encoding="utf-8")))
    whole, sample = answers
    assert (whole["sampled"], sample["sampled"]) == (False, True)
    assert sample["messages"] < whole["messages"] / 3
    error = 1 - whole["virtual_time_s"] / sample["virtual_time_s"]
    assert abs(error) <= sample["error_bound"] < 0.5, f"{error:+.4f} beyond {sample['error_bound']:.4f}"


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize(
    "words",
    [
        ("--machine", "aurora", "--nodes", "16", "--ppn", "96"),
        ("--machine", "aurora", "--nodes", "64", "--ppn", "8", "atoms=20000"),
        ("--machine", "frontier", "--nodes", "64", "--ppn", "8", "differentiate=ik"),
    ],
    ids=["many-on-a-node", "short", "three-fields"],
)
def test_a_sample_of_lammps_is_within_its_bound(
    dryfly: Dryfly, tmp_path: Path, words: tuple[str, ...], seed: str
) -> None:
    """All of it messages: ranks stand in line where exchanges begin, and wait for the slowest at their end."""
    file = tmp_path / "answer.json"
    answers = []
    for sample in ("0", "2"):
        dryfly("predict", "lammps", *words, "atom_work=0 s", "part=1 MiB", "steps=1", f"sample={sample}",
               "--seed", seed, "--json", str(file)).succeeded()  # fmt: skip
        answers.append(json.loads(file.read_text(encoding="utf-8")))
    whole, sample = answers
    assert (whole["sampled"], sample["sampled"]) == (False, True)
    assert sample["messages"] < whole["messages"] / 2
    error = 1 - whole["virtual_time_s"] / sample["virtual_time_s"]
    assert abs(error) <= sample["error_bound"] < 1, f"{error:+.4f} beyond {sample['error_bound']:.4f}"


def lammps_step(dryfly: Dryfly, tmp_path: Path, *options: str, sample: int) -> dict[str, float]:
    file = tmp_path / "answer.json"
    dryfly("predict", "lammps", "--nodes", "128", "--ppn", "96", "--noise", "machine", *options, "grid=16x24x32",
           "bins=4x6x4", "steps=1", f"sample={sample}", "part=1 MiB", "--json", str(file)).succeeded()  # fmt: skip
    answer: dict[str, float] = json.loads(file.read_text(encoding="utf-8"))
    return answer


def lammps_bound(dryfly: Dryfly, tmp_path: Path, *options: str) -> float:
    return lammps_step(dryfly, tmp_path, *options, sample=2)["error_bound"]


def test_waiting_that_does_not_last_is_not_in_the_bound_of_lammps(dryfly: Dryfly, tmp_path: Path) -> None:
    """Ranks of a node wait for those that come late from the exchange before, once for all turns: with all of it in
    proportion to the turns the bound was 1.09 % of a step, messages being 2.1 %. Without queues of Gets, as NICs were
    then; with them it is 0.84 %."""
    nic = ("--set", "nic.rendezvous_queues=0")
    assert 0.005 < lammps_bound(dryfly, tmp_path, "--set", "node.near.places=off", *nic) < 0.008


@pytest.mark.slow
def test_nor_is_it_where_cores_are_near_and_far(dryfly: Dryfly, tmp_path: Path) -> None:
    """With all of it in proportion bounds of these seeds were 0.92 % of a step and more. What two draws differ by comes
    on top by chance, so that the least bound is the one that tells. Of NICs as they were when these limits were set."""
    nic = ("--set", "nic.rendezvous_latency=333.56 ns", "--set", "nic.answer_gap=0 ns")
    bounds = [lammps_bound(dryfly, tmp_path, "--seed", seed, *nic) for seed in ("1", "2", "3", "4", "5")]
    assert 0.005 < min(bounds) < 0.008, bounds


@pytest.mark.slow
def test_the_least_bound_of_lammps_is_one_of_its_whole_step(dryfly: Dryfly, tmp_path: Path) -> None:
    """Of five seeds it is that of the fourth."""
    sample, whole = (lammps_step(dryfly, tmp_path, "--seed", "4", sample=sample) for sample in (2, 0))
    error = abs(1 - whole["virtual_time_s"] / sample["virtual_time_s"])
    assert error < sample["error_bound"] < 0.008, f"{error} and {sample['error_bound']}"


@pytest.mark.parametrize(
    "words",
    [
        ("--machine", "aurora", "--nodes", "16", "--ppn", "12", "grid=16x12x1", "local=64x64x64"),
        ("--machine", "perlmutter-cpu", "--nodes", "16", "--ppn", "16", "grid=8x8x4", "local=32x32x32"),
    ],
    ids=["gpus", "processors"],
)
def test_a_sample_of_amrwind_is_within_its_bound(dryfly: Dryfly, tmp_path: Path, words: tuple[str, ...]) -> None:
    """In a step ranks are late, which they are not in parts that all begin together, and are too often where each part
    is run many times in a row."""
    file = tmp_path / "answer.json"
    answers = {}
    for sample in ("0", "1", "30"):
        dryfly("predict", "amrwind", *words, f"sample={sample}", "--json", str(file)).succeeded()
        answers[sample] = json.loads(file.read_text(encoding="utf-8"))
    whole = answers["0"]["virtual_time_s"]
    assert answers["1"]["virtual_time_s"] < whole
    assert answers["1"]["virtual_time_s"] < answers["30"]["virtual_time_s"]
    for sample in ("1", "30"):
        error = 1 - whole / answers[sample]["virtual_time_s"]
        bound = answers[sample]["error_bound"]
        assert abs(error) <= bound < 0.15, f"sample={sample}: {error:+.4f} beyond {bound:.4f}"


FLAP = '[[flap]]\nlink = "n3"\nat = "5 s"\nfor = "1 ms"\n'


@pytest.mark.parametrize("words", [("allreduce", "count=200"), ("halo", "steps=200")], ids=["allreduce", "halo"])
def test_loops_are_run_whole(dryfly: Dryfly, tmp_path: Path, words: tuple[str, ...]) -> None:
    """What a turn takes may change behind any sample: errors were up to 10 % of halos, 6 % of collectives."""
    file = tmp_path / "answer.json"
    dryfly("predict", *words, "--nodes", "8", "--json", str(file)).succeeded()
    assert not json.loads(file.read_text(encoding="utf-8"))["sampled"]


def test_turns_that_take_no_time_are_answered(dryfly: Dryfly) -> None:
    dryfly("predict", "allreduce", "--nodes", "1", "count=200", "bytes=0").succeeded()


def test_faults_that_pass_are_refused_where_a_sample_would_not_meet_them(dryfly: Dryfly, tmp_path: Path) -> None:
    faults = tmp_path / "flap.toml"
    faults.write_text(FLAP, encoding="utf-8")
    asked = ("predict", "alltoall", "--nodes", "80", "--ppn", "8", "--faults", str(faults), "bytes=64")
    refused = dryfly(*asked, SAMPLED)
    assert refused.exit_status == 2
    assert "accepted are full=1, or faults that last" in refused.stderr
    dryfly(*asked, "full=1").succeeded()
    refused = dryfly("predict", "hacc", "--nodes", "4", "--ppn", "8", "--faults", str(faults), HACC_SAMPLED)
    assert refused.exit_status == 2
    assert "accepted are sample=0, or faults that last" in refused.stderr
    refused = dryfly("predict", "lammps", "--nodes", "4", "--ppn", "8", "--faults", str(faults), "sample=2")
    assert refused.exit_status == 2
    assert "accepted are sample=0, or faults that last" in refused.stderr


@pytest.mark.whole
@pytest.mark.parametrize(
    ("workload", "all_of_it", "some_of_it"),
    [
        (HPL, ("full=1",), ()),
        (SHORT_ALLTOALL, ("full=1",), ()),
        (LONG_ALLTOALL, ("full=1",), ()),
        (HACC, ("sample=0",), (HACC_SAMPLED,)),
        (AMRWIND, ("sample=0",), ("sample=1",)),
        (LAMMPS, ("sample=0",), ("sample=4",)),
    ],
    ids=["hpl", "alltoall-4", "alltoall-64", "hacc", "amrwind", "lammps"],
)
def test_the_true_time_lies_within_the_bound_of_a_sample(
    dryfly: Dryfly, tmp_path: Path, workload: tuple[str, ...], all_of_it: tuple[str, ...], some_of_it: tuple[str, ...]
) -> None:
    whole = predict(dryfly, tmp_path, *workload, *all_of_it)
    assert not whole["sampled"]
    for seed in (1, 2, 3):
        sample = predict(dryfly, tmp_path, *workload, *some_of_it, "--seed", str(seed))
        assert sample["sampled"]
        assert sample["error_bound"] <= 0.05
        error = sample["virtual_time_s"] / whole["virtual_time_s"] - 1
        assert abs(error) <= sample["error_bound"], f"seed {seed}: {error:+.4f} beyond {sample['error_bound']:.4f}"
