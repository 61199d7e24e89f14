"""Skeletons of programs against what these send: counted in the programs themselves, under `dryfly run`, at sizes that
take minutes (docs/model/skeleton-hpcg.md, docs/model/skeleton-nekbone.md)."""

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
NEKBONE = [(8, 1, 128, 270_592), (27, 1, 574, 1_228_016), (16, 4, 2_088, 3_292_992)]


def _sent(workload: str, nodes: int, ppn: int, **parameters: str) -> tuple[float, float]:
    """Of an iteration."""
    words = {"on_node": "nic", "iterations": "3", **parameters}
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


def test_points_that_the_levels_do_not_divide_are_refused() -> None:
    with pytest.raises(UserError, match=r"nx = 36: accepted is a multiple of 8, which levels = 4 asks for"):
        _sent("hpcg", 2, 1, local="36x32x32")


def test_a_sample_without_a_bound_says_so() -> None:
    answer = ask.ask(Question(workload="lammps", nodes=2, ppn=4, parameters=(("steps", "2"), ("sample", "2"))))
    assert (answer.sampled, answer.error_bound, answer.content()["error_bound"]) == (True, None, None)
