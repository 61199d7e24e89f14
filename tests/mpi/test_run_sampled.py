"""Samples of long skeletons against all of them, at 512 nodes: the true time lies within the bound that is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly

HPL = ("hpl", "--model", "skeleton", "--ppn", "6", "--level", "latency", "n=200000", "nb=384", "grid=48x64")
SHORT_ALLTOALL = ("alltoall", "--ppn", "4", "bytes=4KiB")
LONG_ALLTOALL = ("alltoall", "--ppn", "4", "bytes=64KiB")
NOISY_HALO = ("halo", "--ppn", "4", "--noise", "machine", "bytes=32KiB", "steps=200", "work=100 us")


def predict(dryfly: Dryfly, folder: Path, *words: str) -> dict[str, Any]:
    answer = folder / "answer.json"
    dryfly("predict", *words, "--nodes", "512", "--json", str(answer), limit_s=1800.0).succeeded()
    content: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return content


def test_a_sample_of_a_noisy_halo_is_within_its_bound(dryfly: Dryfly, tmp_path: Path) -> None:
    """The first steps take longer than the others: what is sampled has that in its bound."""
    answers = []
    for words in ((), ("full=1",)):
        file = tmp_path / "answer.json"
        halo = ("halo", "--nodes", "64", "--ppn", "8", "--noise", "machine", "bytes=32KiB", "steps=200")
        dryfly("predict", *halo, *words, "--json", str(file)).succeeded()
        answers.append(json.loads(file.read_text(encoding="utf-8")))
    sample, whole = answers
    assert (sample["sampled"], whole["sampled"]) == (True, False)
    assert sample["messages"] * 4 < whole["messages"]
    error = sample["virtual_time_s"] / whole["virtual_time_s"] - 1
    assert abs(error) <= sample["error_bound"] <= 0.05, f"{error:+.4f} beyond {sample['error_bound']:.4f}"


@pytest.mark.whole
@pytest.mark.parametrize(
    "workload", [HPL, SHORT_ALLTOALL, LONG_ALLTOALL, NOISY_HALO], ids=["hpl", "alltoall-4", "alltoall-64", "halo"]
)
def test_the_true_time_lies_within_the_bound_of_a_sample(
    dryfly: Dryfly, tmp_path: Path, workload: tuple[str, ...]
) -> None:
    whole = predict(dryfly, tmp_path, *workload, "full=1")
    assert not whole["sampled"]
    for seed in (1, 2, 3):
        sample = predict(dryfly, tmp_path, *workload, "--seed", str(seed))
        assert sample["sampled"]
        assert sample["error_bound"] <= 0.05
        error = sample["virtual_time_s"] / whole["virtual_time_s"] - 1
        assert abs(error) <= sample["error_bound"], f"seed {seed}: {error:+.4f} beyond {sample['error_bound']:.4f}"
