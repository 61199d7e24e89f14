"""Skeletons of programs against what these send: counted in the programs themselves, under `dryfly run`, at sizes that
take minutes (docs/model/skeleton-hpcg.md, docs/model/skeleton-nekbone.md,
docs/model/skeleton-hacc.md, docs/model/skeleton-amrwind.md)."""

from __future__ import annotations

import re

import pytest

from dryfly.base.errors import UserError
from dryfly.predict import ask
from dryfly.predict.answer import Answer
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
# Ranks of a node and nodes, their grid and what a rank has; messages and bytes of a step.
AMRWIND = [
    (8, 1, "2x2x2", "24x24x24", 16_237, 43_926_624),
    (24, 1, "4x3x2", "16x16x16", 79_250, 60_714_192),
    (27, 1, "3x3x3", "16x16x16", 107_085, 74_617_480),
    (16, 4, "4x4x4", "16x16x16", 273_300, 182_249_168),
]
# Of the program's build without GPUs, with its cycles held.
AS_COUNTED = {"gather": "8", "sweeps": "2", "mac": "3", "temperature": "2", "velocity": "2", "nodal": "3"}
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


@pytest.mark.parametrize(("nodes", "ppn", "grid", "local", "messages", "size"), AMRWIND)
def test_amrwind_sends_what_the_program_sends(
    nodes: int, ppn: int, grid: str, local: str, messages: int, size: int
) -> None:
    sent = _sent("amrwind", nodes, ppn, turns="steps", grid=grid, local=local, **AS_COUNTED)
    assert sent == (messages, size)


def test_amrwind_sends_what_the_program_sends_where_several_ranks_have_the_coarsest_level() -> None:
    def sent(mac: int, nodal: int) -> tuple[float, float]:
        bottom = {"mac_bottom": str(mac), "nodal_bottom": str(nodal)}
        return _sent("amrwind", 16, 4, turns="steps", grid="8x8x1", local="8x8x8", **AS_COUNTED, **bottom)

    least, second_mac, first_mac = sent(1, 1), sent(2, 1), sent(3, 1)
    second_nodal, first_nodal = sent(1, 2), sent(1, 3)
    # The program's three cycles had 24 first and 23 second halves of iterations on faces, 62 and 59 on nodes.
    for which, counted in enumerate((88_636, 33_271_616)):
        of_mac = 23 * (second_mac[which] - least[which]) + (24 - 3) * (first_mac[which] - second_mac[which])
        of_nodal = 59 * (second_nodal[which] - least[which]) + (62 - 3) * (first_nodal[which] - second_nodal[which])
        assert least[which] + (of_mac + of_nodal) / 3 == pytest.approx(counted, abs=0.01)


def test_a_sample_of_amrwind_is_near_the_whole() -> None:
    def beside_work(sample: str) -> float:
        parameters = (("grid", "16x6x1"), ("part", "1 MiB"), ("sample", sample))
        answer = ask.ask(Question(workload="amrwind", nodes=8, ppn=12, parameters=parameters))
        return answer.virtual_time_s - answer.phases["work"]

    assert beside_work("1") == pytest.approx(beside_work("0"), rel=0.1)


def test_amrwind_repeats_to_the_picosecond() -> None:
    for sample in ("0", "2"):
        parameters = (("local", "32x32x32"), ("sample", sample))
        question = Question(workload="amrwind", nodes=4, ppn=3, noise="machine", parameters=parameters)
        first, second = ask.ask(question), ask.ask(question)
        assert (first.virtual_time_s, first.fingerprint) == (second.virtual_time_s, second.fingerprint)


def test_cells_that_cannot_be_halved_are_refused() -> None:
    with pytest.raises(UserError, match=r"local = 8x9x8: accepted are even numbers"):
        _sent("amrwind", 2, 1, turns="steps", local="8x9x8")


def test_boxes_that_pencils_do_not_divide_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"local = 5x5x5 has 25 points across axis 0: accepted is a multiple of 2, the ranks"
    ):
        _sent("hacc", 4, 1, turns="steps", grid="2x2x1", local="5x5x5")


def test_a_sample_of_hacc_is_near_the_whole() -> None:
    def took(sample: str) -> float:
        parameters = (("grid", "16x12x8"), ("particle_work", "0 s"), ("part", "4 MiB"), ("sample", sample))
        return ask.ask(Question(workload="hacc", nodes=16, ppn=96, parameters=parameters)).virtual_time_s

    assert took("6") == pytest.approx(took("0"), rel=0.1)


def test_a_sample_of_hacc_that_is_too_small_for_its_bound_is_refused() -> None:
    with pytest.raises(UserError, match=r"sample = 5: accepted is 0, for all of it, or 6 to 1000 turns"):
        _sent("hacc", 2, 4, turns="steps", sample="5")


def test_points_that_the_levels_do_not_divide_are_refused() -> None:
    with pytest.raises(UserError, match=r"local = 36x32x32: accepted are multiples of 8, which levels = 4 asks for"):
        _sent("hpcg", 2, 1, local="36x32x32")


@pytest.mark.parametrize("steps", ["1", "10"])
def test_a_sample_of_lammps_with_all_turns_is_the_whole(steps: str) -> None:
    """Steps with and without neighbour lists; only ghosts and sums that are like those that were run are left out."""

    def ask_for(sample: str) -> Answer:
        parameters = (("atom_work", "0 s"), ("steps", steps), ("sample", sample))
        return ask.ask(Question(workload="lammps", nodes=8, ppn=6, parameters=parameters))

    whole, sample = ask_for("0"), ask_for("1000")
    assert (whole.sampled, sample.sampled) == (False, True)
    assert sample.virtual_time_s == pytest.approx(whole.virtual_time_s, rel=0.02)
    assert 0 < sample.error_bound < 0.05
    assert sample.phases.keys() == whole.phases.keys()
    assert sample.phases["mesh"] == pytest.approx(whole.phases["mesh"], rel=0.04)


def test_a_sample_of_lammps_repeats_to_the_picosecond() -> None:
    parameters = (("steps", "2"), ("sample", "2"))
    question = Question(workload="lammps", nodes=4, ppn=12, noise="machine", parameters=parameters)
    first, second = ask.ask(question), ask.ask(question)
    assert (first.virtual_time_s, first.fingerprint, first.error_bound) == (
        second.virtual_time_s,
        second.fingerprint,
        second.error_bound,
    )


@pytest.mark.parametrize(
    ("workload", "turns", "given", "sentence"),
    [
        ("hpcg", "iterations", {"local": "8x8x65544"}, "local = 8x8x65544: accepted is AxBxC, each from 1 to 65536"),
        ("nekbone", "iterations", {"local": "8x99999x8"}, "local = 8x99999x8: accepted is AxBxC, each from 1 to 65536"),
        ("hacc", "steps", {"local": "2049x8x8"}, "local = 2049x8x8: accepted is AxBxC, each from 1 to 2048"),
        ("amrwind", "steps", {"local": "2x8x8"}, "local = 2x8x8: accepted is AxBxC, each from 4 to 2048"),
        ("lammps", "steps", {"mesh": "9x9x9999999"}, "mesh = 9x9x9999999: accepted is AxBxC, each from 1 to 1048576"),
        ("lammps", "steps", {"mesh": "1x8x8"}, "mesh = 1x8x8 gives 1 points along axis 0: accepted is at least one"),
        ("lammps", "steps", {"box": "1x9x9"}, "spacing = 243 gives 1 points along axis 0: accepted is at least one"),
        ("lammps", "steps", {"bins": "3x1x1"}, "bins = 3x1x1: accepted are divisors of the grid's sides"),
    ],
)
def test_a_refusal_names_what_was_written(workload: str, turns: str, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        _sent(workload, 2, 1, turns=turns, **given)
