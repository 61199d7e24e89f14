"""`dryfly bisect`: the search with made-up figures, over a setting and over a small git repository."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.mpi import software
from dryfly.mpi.software import Charges, Cost, Packing, SoftwareTable
from dryfly.result import software_spent
from dryfly.study import bisect as bisect_module
from dryfly.study import series
from dryfly.study.bisect import Options, bisect
from dryfly.study.changepoint import Found, ends, search
from dryfly.study.trial import Trial

_PACKING = Packing(instructions=0.0, per_block=0.0, per_kib=0.0, seen=1)


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


def test_ends_the_wrong_way_round_are_told_before_anybody_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(series, "released", lambda _: ("5.0.0", "5.0.2"))
    for text, swapped in (("5.0..4.3", "4.3..5.0"), ("5.1..5.0", "5.0..5.1")):
        with pytest.raises(UserError, match=rf"the first end is the newer one; accepted is {swapped}"):
            series.parse(f"mpich=={text}", repository=None, build=None, prefix=None, work=tmp_path)
    names = series.parse("mpich==5.0..5", repository=None, build=None, prefix=None, work=tmp_path).names
    assert list(names) == ["5.0.0", "5.0.2"]


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
    begun = 0

    def interrupted(trial: Trial) -> dict[str, Any]:
        nonlocal begun
        begun += 1
        if begun == 3:
            raise KeyboardInterrupt
        return _slow_from(41)(trial)

    fake_runs(interrupted)
    with pytest.raises(KeyboardInterrupt):
        bisect(_options(tmp_path))
    other = _options(tmp_path, command=("latency", "-m", "16:16"))
    with pytest.raises(UserError, match="another question, which is not answered yet"):
        bisect(other)
    fake_runs(_slow_from(41))
    assert bisect(_options(tmp_path)) == 0
    fourth = fake_runs(_slow_from(41))
    assert bisect(other) == 1  # the made-up runs have no row for its size
    assert len(fourth) > 0, "an answered question gives its place to another one, and no figures"
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
        ({"over": "--on-node=provider,both"}, "accepted is auto or provider or shared"),
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


# Instructions, by tables.


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mpich 1 to 5 with tables that are made up, and runs that send two messages and execute what the tables say."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for release in range(1, 6):
        table = SoftwareTable(
            library=f"mpich-{release}", build="0", architecture="x86_64", processor="avx2", tool="dryfly 0",
            calls={"MPI_Isend": {("call", "inject"): Cost(instructions=200.0 + 50 * (release > 3), per_kib=0, seen=1)}},
            pack=_PACKING, unpack=_PACKING, reductions={},
        )  # fmt: skip
        path = software.cached_file(table.library)
        path.parent.mkdir(parents=True, exist_ok=True)
        software.write(table, path)
    monkeypatch.setattr(bisect_module, "program_hashes", lambda: [])
    monkeypatch.setattr(series.mpi, "add", lambda what: SimpleNamespace(name=what.replace("==", "-")))

    def run_all(trials: Iterable[Trial], *_: Any, **__: Any) -> dict[Trial, dict[str, Any]]:
        return {trial: _run_by_table(trial) for trial in trials}

    monkeypatch.setattr(bisect_module, "run_all", run_all)


def _run_by_table(trial: Trial) -> dict[str, Any]:
    assert trial.case.software == "measured"
    name = trial.case.mpi or ""
    charges = Charges(software.read(software.cached_file(name)))
    ranks = software_spent.of_ranks({"ranks": [{"software": [["MPI_Isend", 0, 1, 2, 16, 100]]}]}, charges)
    spent = software_spent.content(ranks, slowest=0, profile=[{"call": "MPI_Isend", "count": 2}])
    charged = {"table": name, "charged_s": 1e-10, "assumed_s": 0.0, **spent}
    return {"failure": "", "output": "", "virtual_time_s": 1.0, "messages": 2, "software": charged}


@pytest.mark.parametrize("figure", ["instructions", "instructions:MPI_Isend"])
@pytest.mark.usefixtures("releases")
def test_the_release_with_a_longer_path_is_found_and_the_path_is_named(
    figure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = _options(tmp_path, over="mpich==1,2,3,4,5", figure=figure)
    assert bisect(options) == 0
    out = json.loads((tmp_path / "out.json").read_text())
    assert (out["before"], out["after"]) == ("3", "4")
    assert {row["figure"] for row in out["tried"]} == {200.0, 250.0}
    assert "MPI_Isend, call to inject: 200.0 to 250.0" in capsys.readouterr().out


@pytest.mark.usefixtures("releases")
def test_a_call_that_the_program_does_not_make_cannot_be_tested(tmp_path: Path) -> None:
    assert bisect(_options(tmp_path, over="mpich==1,2", figure="instructions:MPI_Put")) == 1
    out = json.loads((tmp_path / "out.json").read_text())
    assert {row["why"] for row in out["tried"]} == {"it has not called MPI_Put"}


@pytest.mark.usefixtures("releases")
def test_a_table_that_was_counted_anew_is_another_question(tmp_path: Path) -> None:
    options = _options(tmp_path, over="mpich==1,5", figure="instructions")
    assert bisect(options) == 0
    path = software.cached_file("mpich-5")
    path.write_text(path.read_text().replace("250.0", "300.0"))
    assert bisect(options) == 0
    figures = {row["figure"] for row in json.loads((tmp_path / "out.json").read_text())["tried"]}
    assert figures == {200.0, 300.0}


@pytest.mark.usefixtures("releases")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"over": "mpich==1,8,2,9", "figure": "instructions"},
            r'instructions of mpich-8, mpich-9 have not been counted; "dryfly mpi add mpich==8 && dryfly mpi measure '
            r'mpich-8" counts them, and so for the others',
        ),
        ({"over": "mpich==1,2", "figure": "instructions:Isend"}, r"--figure instructions:Isend: accepted is"),
        (
            {"over": "mpich==1,2", "figure": "instructions:MPI_Bogus"},
            r"MPI_Bogus is no function of MPI that dryfly knows",
        ),
        (
            {"over": "git:HEAD~1..HEAD", "build": "make", "prefix": "p", "figure": "instructions"},
            "a library that --build makes has not been counted",
        ),
    ],
)
def test_instructions_that_nobody_has_counted_are_refused_before_anything_runs(
    changes: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_all(*_: Any, **__: Any) -> None:
        raise AssertionError("something was run")

    monkeypatch.setattr(bisect_module, "run_all", run_all)
    with pytest.raises(UserError, match=said):
        bisect(_options(tmp_path, **changes))
    assert not (tmp_path / "state.json").exists()
