"""Python callers are told what a field accepts, before anything starts; so are those with a narrow terminal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import dryfly
from dryfly.api import How
from dryfly.base import fitted as lines
from dryfly.run.runner import Runner


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"nodes": "2"}, "Case: nodes='2': accepted is a whole number or None"),
        ({"nodes": 2.5}, "Case: nodes=2.5: accepted is a whole number or None"),
        ({"nodes": True}, "Case: nodes=True: accepted is a whole number or None"),
        ({"machine": None}, "Case: machine=None: accepted is text"),
        ({"seed": "a"}, "Case: seed='a': accepted is a whole number"),
        ({"program": "pp.c"}, "Case: program='pp.c': accepted is a tuple of text each"),
        ({"program": ("pp.c", 3)}, r"Case: program=\('pp.c', 3\): accepted is a tuple of text each"),
        ({"sets": "fabric.link.rate=1"}, "Case: sets='fabric.link.rate=1': accepted is a tuple of text each"),
        ({"environment": (("A", 1),)}, r"Case: environment=.*: accepted is a tuple of \(text, text\) each"),
        ({"environment": (("A", "1\0"),)}, "Case: environment="),
        ({"faults": 3}, "Case: faults=3: accepted is text or a mapping or None"),
        ({"skip_numerics": 1}, "Case: skip_numerics=1: accepted is True or False"),
    ],
)
def test_a_case_has_the_types_it_declares(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(dryfly.UserError, match=sentence):
        dryfly.Case(**{"program": ("a.out",), **wrong})


def test_lists_become_tuples_and_paths_text() -> None:
    anything: Any = {"program": ["a.out", "x"], "environment": [["A", "1"]], "faults": Path("f.toml")}
    case = dryfly.Case(**anything)
    assert (case.program, case.environment, case.faults) == (("a.out", "x"), (("A", "1"),), "f.toml")


CASE = dryfly.Case(program=("a.out",), nodes=2, compute="none")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"timeout_s": "5"}, "timeout_s='5': accepted is a number or None"),
        ({"timeout_s": -1}, "timeout_s=-1: accepted is a number of seconds above 0"),
        ({"timeout_s": math.nan}, "timeout_s=nan: accepted is a number or None"),
        ({"record": 123}, "record=123: accepted is text or None"),
        ({"bogus": 1}, "bogus: accepted are"),
    ],
)
def test_a_run_is_told_before_it_starts(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(dryfly.UserError, match=sentence):
        dryfly.run_case(CASE, **how)


def test_what_is_no_case_is_named(tmp_path: Path) -> None:
    anything: Any = "pp.c"
    (tmp_path / "file").touch()
    for call, sentence in (
        (lambda: dryfly.run_case(anything), "run_case: 'pp.c': accepted is a dryfly.Case"),
        (lambda: dryfly.sweep([anything]), "sweep: 'pp.c': accepted is a dryfly.Case"),
        (lambda: dryfly.sweep(anything), "cases='pp.c': accepted are several Cases"),
        (lambda: dryfly.sweep([], parallel=anything), "parallel='pp.c': accepted is a whole number, 1 or more"),
        (lambda: dryfly.sweep([], cache=tmp_path / "file"), "accepted is a folder, which this is not"),
        (lambda: dryfly.sweep([], timeout_s=0), "timeout_s=0: accepted is a number of seconds above 0"),
    ):
        with pytest.raises(dryfly.UserError, match=sentence):
            call()


def test_the_types_of_how_are_those_of_a_runner() -> None:
    assert get_type_hints(How) == get_type_hints(Runner)


def test_every_name_is_found_by_completion() -> None:
    assert set(dryfly.__all__) <= set(dir(dryfly))
    assert "Any" not in dir(dryfly)
    for name in dryfly.__all__:
        assert getattr(dryfly, name).__doc__


def test_lines_go_on_under_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "aurora   10,624  a machine with many nodes and some words"
    assert lines.fitted(text) == text  # no terminal here
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "45")
    assert lines.fitted(text) == "aurora   10,624  a machine with many nodes\n" + " " * 17 + "and some words"
