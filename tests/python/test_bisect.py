"""`dryfly bisect`: the search with made-up figures, over a setting and over a small git repository."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.study import bisect as bisect_module
from dryfly.study import series
from dryfly.study.bisect import Options, bisect
from dryfly.study.changepoint import Found, ends, search
from dryfly.study.trial import Trial


def _searched(figures: list[float | None], threshold: float | None = None) -> tuple[Found, list[int]]:
    asked: list[int] = []

    def measure(place: int) -> float | None:
        asked.append(place)
        return figures[place]

    between = ends(len(figures), measure)
    assert between is not None
    return search(between, measure, threshold=threshold), asked


def test_the_step_is_found_wherever_it_is_with_as_many_figures_as_halving_needs() -> None:
    for step in range(1, 1000):
        found, asked = _searched([2.0 if place < step else 3.0 for place in range(1000)])
        assert found == Found(before=step - 1, after=step)
        assert len(asked) <= 2 + 10  # both ends, and the logarithm of 1,000


def test_points_that_cannot_be_tested_are_gone_around() -> None:
    found, _ = _searched([1.0, 1.0, None, None, 1.0, 2.0, 2.0])
    assert found == Found(before=4, after=5)
    found, _ = _searched([1.0, 1.0, None, None, 2.0, 2.0])
    assert found == Found(before=1, after=4)  # it may be in either of the two
    found, _ = _searched([None, 1.0, 2.0, None])
    assert found == Found(before=1, after=2)


def test_without_two_figures_there_are_no_ends() -> None:
    assert ends(3, lambda _: None) is None
    assert ends(3, lambda place: 1.0 if place == 1 else None) is None


def test_a_threshold_finds_the_first_change_and_without_one_the_largest_counts() -> None:
    figures: list[float | None] = [10.0, 10.6, 10.6, 10.7, 20.0]
    assert _searched(figures, threshold=0.05)[0] == Found(before=0, after=1)
    assert _searched(figures)[0] == Found(before=3, after=4)


def test_a_threshold_looks_only_in_the_direction_of_the_last_end() -> None:
    figures: list[float | None] = [10.0, 15.0, 15.0, 5.0, 5.0]
    assert _searched(figures, threshold=0.05)[0] == Found(before=2, after=3)


def test_versions_within_a_range_include_its_ends() -> None:
    released = ("4.0.3", "4.1.3", "4.2.3", "5.0.0", "5.0.1", "5.0.1.post1", "5.0.2", "5.1.0")
    assert series.between(released, "4.2", "5.0") == ("4.2.3", "5.0.0", "5.0.1", "5.0.1.post1", "5.0.2")
    assert series.between(released, "4.0.3", "4.1.3") == ("4.0.3", "4.1.3")


# The whole of bisect, with runs that are made up.

Runs = list[str]


@pytest.fixture
def fake_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Trial], str]], Runs]:
    """Instead of simulating, a run prints what `figure` says of it; the list fills with what was run."""

    def install(figure: Callable[[Trial], str]) -> Runs:
        runs: Runs = []

        def run_all(trials: Iterable[Trial], *_: Any, **__: Any) -> dict[Trial, dict[str, Any]]:
            outcomes = {}
            for trial in trials:
                output = figure(trial)
                runs.append(output)
                outcomes[trial] = {"failure": "", "output": output, "virtual_time_s": 1.0}
            return outcomes

        monkeypatch.setattr(bisect_module, "run_all", run_all)
        monkeypatch.setattr(bisect_module, "program_hashes", lambda: [])
        return runs

    return install


def _options(folder: Path, **changes: Any) -> Options:
    options = Options(
        over="SIZE=1..64",
        command=("latency", "-m", "8:8"),
        state=str(folder / "state.json"),
        json_file=str(folder / "out.json"),
    )
    return replace(options, **changes)


def _slow_from(least: int) -> Callable[[Trial], str]:
    def figure(trial: Trial) -> str:
        size = int(dict(trial.case.environment)["SIZE"])
        return f"# Size          Avg Latency(us)\n8         {3.5 if size >= least else 2.25:18.2f}\n"

    return figure


def test_a_setting_is_narrowed_down(
    tmp_path: Path, fake_runs: Callable[..., Runs], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = fake_runs(_slow_from(41))
    assert bisect(_options(tmp_path)) == 0
    outcome = json.loads((tmp_path / "out.json").read_text())
    assert (outcome["before"], outcome["after"]) == ("40", "41")
    assert len(runs) == len(outcome["tried"]) == 8  # both ends and the logarithm of 64
    said = capsys.readouterr().out
    assert "slower from 40 (2.25 us) to 41 (3.5 us, x 1.556)" in said


def test_ends_that_are_alike_are_said_to_be(
    tmp_path: Path, fake_runs: Callable[..., Runs], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = fake_runs(_slow_from(1000))
    assert bisect(_options(tmp_path)) == 1
    assert len(runs) == 2
    assert "there is nothing to find" in capsys.readouterr().out


def test_after_an_interruption_only_what_is_missing_is_run(tmp_path: Path, fake_runs: Callable[..., Runs]) -> None:
    slow = _slow_from(41)
    begun = 0

    def interrupted(trial: Trial) -> str:
        nonlocal begun
        begun += 1
        if begun == 5:
            raise KeyboardInterrupt
        return slow(trial)

    first = fake_runs(interrupted)
    with pytest.raises(KeyboardInterrupt):
        bisect(_options(tmp_path))
    second = fake_runs(slow)
    assert bisect(_options(tmp_path)) == 0
    assert len(first) == 4
    assert len(first) + len(second) == 8
    assert json.loads((tmp_path / "out.json").read_text())["after"] == "41"
    third = fake_runs(slow)
    assert bisect(_options(tmp_path)) == 0
    assert third == []


def test_the_state_of_another_question_is_not_mixed_in(tmp_path: Path, fake_runs: Callable[..., Runs]) -> None:
    fake_runs(_slow_from(41))
    assert bisect(_options(tmp_path)) == 0
    with pytest.raises(UserError, match="another question"):
        bisect(_options(tmp_path, command=("latency", "-m", "16:16")))
    (tmp_path / "state.json").write_text("[]")
    with pytest.raises(UserError, match="not of dryfly bisect"):
        bisect(_options(tmp_path))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"over": "mpich"}, "accepted is mpich==4.3..5.0"),
        ({"over": "A=1"}, "two different values"),
        ({"over": "A=1,1"}, "two different values"),
        ({"over": "A=1..9999999"}, "at most"),
        ({"over": "A=1..8", "build": "make"}, "--repo, --build and --prefix"),
        ({"command": ()}, "is missing"),
        ({"command": ("latency",)}, "--figure SIZE"),
        ({"command": ("true",), "figure": "Time"}, "one group"),
        ({"command": ("true",), "figure": "("}, "no regular expression"),
        ({"command": ("./program",)}, "program ./program does not exist"),
        ({"over": "--on-node=provider,both"}, "accepted is provider or shared"),
        ({"over": "nic.no_such_field=1,2"}, "there is no such field"),
        ({"threshold": 0.0}, "--threshold 0"),
        ({"state": "/no/such/folder/state"}, "does not exist"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    tmp_path: Path, fake_runs: Callable[..., Runs], changes: dict[str, Any], says: str
) -> None:
    runs = fake_runs(_slow_from(41))
    with pytest.raises(UserError, match=says):
        bisect(_options(tmp_path, **changes))
    assert runs == []


# Over a git repository.


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Ten commits; from the seventh on the program is slower, and the fifth and the sixth do not build."""
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    for number in range(1, 11):
        (folder / "source").write_text("broken" if number in (5, 6) else "Time: 30" if number >= 7 else "Time: 20")
        _git(folder, "add", "source")
        _git(folder, "commit", "--quiet", "--allow-empty", "-m", f"change {number}")
    return folder


_BUILD = "if grep -q broken source; then echo it does not compile >&2; exit 3; fi; cp source built"


def test_a_commit_is_found_and_those_that_do_not_build_are_named(
    tmp_path: Path,
    repository: Path,
    fake_runs: Callable[..., Runs],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(repository)

    def figure(trial: Trial) -> str:
        assert trial.folder is not None
        return (trial.folder / "built").read_text()

    fake_runs(figure)
    options = _options(tmp_path, over="git:main~9..main", build=_BUILD, command=("./built",), figure="Time: ([0-9.]+)")
    assert bisect(options) == 0
    outcome = json.loads((tmp_path / "out.json").read_text())
    commits = _git(repository, "rev-list", "--reverse", "main").split()
    assert (outcome["before"], outcome["after"]) == (commits[3][:12], commits[6][:12])
    assert outcome["untestable_between"] == [commits[4][:12], commits[5][:12]]
    said = capsys.readouterr().out
    assert "change 7" in said
    assert "the build ended with status 3" in said
    # Nothing of it stays in the repository, and its own files were not touched.
    assert len(_git(repository, "worktree", "list").splitlines()) == 1
    assert _git(repository, "status", "--porcelain") == ""


def test_an_unknown_commit_is_refused(tmp_path: Path, repository: Path, fake_runs: Callable[..., Runs]) -> None:
    fake_runs(_slow_from(1))
    with pytest.raises(UserError, match="git rev-parse"):
        bisect(_options(tmp_path, over="git:nowhere..main", repository=str(repository), build="true"))
    with pytest.raises(UserError, match="comes after"):
        bisect(_options(tmp_path, over="git:main..main", repository=str(repository), build="true"))
