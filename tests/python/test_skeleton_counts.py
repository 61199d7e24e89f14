"""Skeletons of programs against what these send: counted in the programs themselves, under `dryfly run`, at sizes that
take minutes (docs/model/skeleton-hpcg.md, docs/model/skeleton-nekbone.md,
docs/model/skeleton-hacc.md)."""

from __future__ import annotations

import pytest

from dryfly.base.errors import UserError
from dryfly.predict import ask
from dryfly.predict.question import Question

# Ranks of a node and nodes, what a rank has; messages and bytes of an iteration, all through NICs.
HPCG = [
    (8, 1, "32x32x32", 688, 1_014_272),
    (27, 1, "16x16x16", 3_734, 1_220_752),
    (16, 4, "32x64x64", 11_448, 32_365_632),
]
# Ranks of a node and nodes, their grid and what a rank has; messages and bytes of a step.
HACC = [
    (8, 1, "2x2x2", "24x24x24", 2_824, 34_948_032),
    (16, 1, "4x2x2", "12x24x24", 7_264, 55_740_928),
    (24, 1, "4x3x2", "36x48x72", 12_928, 1_102_826_624),
    (4, 4, "4x2x2", "24x48x48", 7_264, 307_890_688),
]
NEKBONE = [(8, 1, 128, 270_592), (27, 1, 574, 1_228_016), (16, 4, 2_088, 3_292_992)]


def _sent(workload: str, nodes: int, ppn: int, turns: str = "iterations", **parameters: str) -> tuple[float, float]:
    """Of an iteration."""
    words = {"on_node": "nic", turns: "3", **parameters}
    answer = ask.ask(Question(workload=workload, nodes=nodes, ppn=ppn, parameters=tuple(words.items())))
    assert answer.messages is not None
    assert answer.bytes is not None
    return answer.messages / 3, answer.bytes / 3


@pytest.mark.parametrize(("nodes", "ppn", "local", "messages", "size"), HPCG)
def test_hpcg_sends_what_its_reference_code_sends(nodes: int, ppn: int, local: str, messages: int, size: int) -> None:
    assert _sent("hpcg", nodes, ppn, local=local) == (messages, size)


@pytest.mark.parametrize(("nodes", "ppn", "messages", "size"), NEKBONE)
def test_nekbone_sends_what_the_program_sends(nodes: int, ppn: int, messages: int, size: int) -> None:
    assert _sent("nekbone", nodes, ppn, local="4x4x4", nx1="10") == (messages, size)


@pytest.mark.parametrize(("nodes", "ppn", "grid", "local", "messages", "size"), HACC)
def test_hacc_sends_what_swfft_sends(nodes: int, ppn: int, grid: str, local: str, messages: int, size: int) -> None:
    assert _sent("hacc", nodes, ppn, turns="steps", grid=grid, local=local) == (messages, size)


def test_boxes_that_pencils_do_not_divide_are_refused() -> None:
    with pytest.raises(UserError, match=r"local has 25 points across axis 0: accepted is a multiple of 2, the ranks"):
        _sent("hacc", 4, 1, turns="steps", grid="2x2x1", local="5x5x5")


def test_a_sample_of_hacc_is_near_the_whole() -> None:
    def took(sample: str) -> float:
        parameters = (("grid", "16x12x8"), ("particle_work", "0 s"), ("part", "4 MiB"), ("sample", sample))
        return ask.ask(Question(workload="hacc", nodes=16, ppn=96, parameters=parameters)).virtual_time_s

    assert took("2") == pytest.approx(took("0"), rel=0.1)


def test_points_that_the_levels_do_not_divide_are_refused() -> None:
    with pytest.raises(UserError, match=r"nx = 36: accepted is a multiple of 8, which levels = 4 asks for"):
        _sent("hpcg", 2, 1, local="36x32x32")


def test_a_sample_without_a_bound_says_so() -> None:
    answer = ask.ask(Question(workload="lammps", nodes=2, ppn=4, parameters=(("steps", "2"), ("sample", "2"))))
    assert (answer.sampled, answer.error_bound, answer.content()["error_bound"]) == (True, None, None)
