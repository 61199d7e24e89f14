"""`dryfly predict --program`: of what a program sends, its iteration is found, and compared with the skeleton's."""

from __future__ import annotations

import resource
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dryfly.base.errors import RunError, UserError
from dryfly.predict import ask, held, predict
from dryfly.predict.question import Question


def _recording(*, iterations: int) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """Of two ranks: twelve sums with one small message each, then iterations of three sums, with 100 bytes after the
    first and twice 5,000 after the second, in which rank 1 sends one of these less."""
    calls: dict[str, list[object]] = {"rank": [], "call": [], "entered_s": []}
    messages: dict[str, list[object]] = {"source": [], "called_s": [], "bytes": []}
    for rank in (0, 1):
        sums = [(8,)] * 12 + [(8, 100), (8, 5000, 5000)[: 3 - rank], (8,)] * iterations
        for number, sizes in enumerate(sums):
            for name, value in (("rank", rank), ("call", "MPI_Allreduce"), ("entered_s", float(number))):
                calls[name].append(value)
            for after, size in enumerate(sizes):
                for name, value in (("source", rank), ("called_s", number + 0.1 * after), ("bytes", size)):
                    messages[name].append(value)
    return calls, messages


def test_the_iteration_is_what_most_messages_are_sent_in() -> None:
    found, times = held.iteration_of(*_recording(iterations=9), 3)
    # It may begin with any of its three sums, so that the last one of the twelve begins the first.
    assert (found, times) == (Counter({8: 6, 100: 2, 5000: 3}), 9)


def test_what_does_not_come_again_is_no_iteration() -> None:
    calls, messages = _recording(iterations=1)
    for at, call in enumerate(calls["call"]):
        if at % 2:
            calls["call"][at] = f"not {call}"
    assert held.iteration_of(calls, messages, 7)[1] <= 1
    assert held.iteration_of({"rank": [], "call": [], "entered_s": []}, messages, 3) == (Counter(), 0)


def _held(program: dict[int, int], skeleton: dict[int, int], iterations: int = 2) -> held.Held:
    classes = held.classes_of(Counter(program), Counter(skeleton), iterations)
    return held.Held(command="solve", times=7, classes=classes)


def test_classes_are_powers_of_two_and_the_skeletons_iterations_are_divided_out() -> None:
    found = _held({8: 10, 15: 1, 4096: 4}, {8: 22, 4096: 8})
    assert [(each.least, each.most) for each in found.classes] == [(8, 15), (4096, 8191)]
    assert found.classes[0].program == (11, 95)
    assert found.classes[0].skeleton == (11, 88)
    assert found.all.program == (15, 95 + 16384)
    assert not found.outside
    assert found.content()["within"] is True


@pytest.mark.parametrize(
    ("program", "skeleton", "outside"),
    [
        ({8: 100, 4096: 100}, {8: 222, 4096: 200}, [8]),  # 11 % more of one
        ({8: 100, 4096: 100}, {8: 218, 4096: 200}, []),  # 9 %
        ({8: 100, 64: 1, 4096: 100}, {8: 200, 4096: 200}, []),  # one message of 201 does not count
        ({8: 100, 64: 5, 4096: 100}, {8: 200, 4096: 200}, [64]),
        ({8: 100}, {8: 200, 64: 10}, [64, 0]),  # where the program has none; and a quarter more bytes in all
    ],
)
def test_a_class_that_counts_and_is_further_apart_than_a_tenth_is_outside(
    program: dict[int, int], skeleton: dict[int, int], outside: list[int]
) -> None:
    found = _held(program, skeleton)
    assert [each.least for each in found.outside] == outside
    assert found.content()["within"] is not bool(outside)


@pytest.mark.parametrize(
    ("workload", "command", "more", "sentence"),
    [
        ("halo", "a.out", {}, r"--program: accepted with hpcg and nekbone"),
        ("hpcg", " ", {}, r"--program: accepted is a program with its arguments, in quotes"),
        ("hpcg", "a.out 'x", {}, r"No closing quotation; accepted is a program with its arguments"),
        ("hpcg", "a.out", {"nodes": 1}, r"one rank sends no messages; accepted are 2 ranks or more"),
        ("hpcg", "a.out", {"noise": "machine"}, r"--noise with --program: messages are counted where all is well"),
        ("nekbone", "a.out", {"parameters": (("on_node", "memory"),)}, r"on_node=memory with --program: .* is nic"),
    ],
)
def test_what_cannot_be_held_is_refused(workload: str, command: str, more: dict[str, object], sentence: str) -> None:
    given: dict[str, object] = {"nodes": 2, "ppn": 1, "parameters": (("on_node", "nic"),), **more}
    if workload == "halo":
        given["parameters"] = ()
    with pytest.raises(UserError, match=sentence):
        held.check(Question(workload=workload, **given), command)  # type: ignore[arg-type]


def test_a_sweep_is_not_held(tmp_path: Path) -> None:
    how = predict.How(program="a.out", out=str(tmp_path / "out"))
    with pytest.raises(UserError, match="--program: one case is held against it"):
        predict.predict("hpcg", [], {"machine": "aurora"}, how)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("/nonexistent x", r"^--program: program /nonexistent does not exist$"),
        ("/etc/passwd", r"^--program: /etc/passwd is not executable"),
        ("no-such-program", r'^--program: program "no-such-program" is not found on PATH'),
    ],
)
def test_a_program_that_cannot_be_started_is_refused_before_the_skeleton_is_run(
    command: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ask, "ask", lambda *_, **__: pytest.fail("the skeleton is run"))
    given = {"machine": "aurora", "nodes": 2, "ppn": 1}
    with pytest.raises(UserError, match=sentence):
        predict.predict("hpcg", [], given, predict.How(program=command))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("nodes", "limit", "sentence"),
    [
        # (1000 - 64) / 4
        (300, 1000, r"^--program: 300 ranks .*: accepted are up to 234, for each takes 4 file descriptors of 1,000 "),
        (300, 1_000_000, ""),
        (9000, 1_000_000, r"^--program: 18,000 ranks .*: accepted are up to 16,384, which are real processes$"),
    ],
)
def test_ranks_that_cannot_be_started_are_refused_with_how_many_can(
    nodes: int, limit: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    question = Question(workload="hpcg", nodes=nodes, ppn=1 + (nodes > 300), parameters=(("on_node", "nic"),))
    # What is refused next is the program.
    with pytest.raises(UserError, match=sentence or "^--program: program /nonexistent does not exist"):
        held.check(question, "/nonexistent")


def test_a_run_that_ends_badly_is_told_without_its_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "dryfly: warning: there is less memory than that\ndryfly: rank 3 ended by signal 9\n"
    ended = subprocess.CompletedProcess(args=[], returncode=1, stdout="", stderr=said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: ended)
    question = Question(workload="hpcg", nodes=2, ppn=1, parameters=(("on_node", "nic"),))
    with pytest.raises(RunError, match=r"^--program a.out: rank 3 ended by signal 9$"):
        held.hold(question, "a.out")


@pytest.mark.parametrize(("workload", "model"), [("hpl", None), ("hplmxp", None), ("campaign", None),
                                                 ("startup", None), ("hpl", "skeleton"), ("halo", None)])  # fmt: skip
def test_other_workloads_are_refused_by_what_was_written(workload: str, model: str | None) -> None:
    given = {"machine": "aurora", "nodes": 8, "model": model}
    with pytest.raises(UserError, match=r"^--program: accepted with hpcg and nekbone"):
        predict.predict(workload, [], given, predict.How(program="a.out"))
