"""tool/applications.py: what an application's folder may say, and what the page says of what was measured."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import RunError, UserError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tool"))

from atlas import application, debian, install, judge, measure, page, process  # noqa: E402
from atlas.application import Application  # noqa: E402

_SOLVER: dict[str, Any] = {
    "title": "A solver: ten steps",
    "packages": ["solver"],
    "mpi": "openmpi",
    "program": "solve",
    "arguments": ["-n", "10"],
    "ranks": 4,
    "merit": {"name": "energy", "pattern": r"energy ([\d.]+)"},
    "finding": {
        "question": "Where do ranks meet?",
        "says": "In memory it takes {memory} less.",
        "best": "memory",
        "variants": [{"name": "memory", "options": ["--on-node", "shared"]}, {"name": "spread"}],
    },
}


def solver(**changes: Any) -> Application:
    return application.parse({**copy.deepcopy(_SOLVER), **changes}, name="solver", shown="solver.toml")


def variant(name: str, median: float) -> dict[str, Any]:
    return {"name": name, "median": median, "least": median * 0.99, "most": median * 1.01, "merit": "1", "health": []}


def measured(*variants: dict[str, Any], merit: str = "1.5") -> dict[str, Any]:
    row = {
        "mpi": "openmpi-5.0.11", "nodes": 4, "merit": merit, "virtual_time_s": 0.5, "ranks": 4,
        "processors": 2, "threads": 1, "wall_s": 6.0, "cpu_s": 9.0, "inside_s": 5.0,
        "time": {"computing_s": 0.3, "communicating_s": 0.1, "waiting_s": 0.1}, "compute_s": 8.0, "messages": 1000,
        "bytes": 12345, "calls_time_s": 0.4, "health": [], "hand_overs": 9,
        "calls": [{"call": "MPI_Allreduce", "count": 40, "bytes": 320, "time_s": 0.3}],
    }  # fmt: skip
    return {
        "format": 1, "version": "solver 1.0", "dryfly": "0", "ranks": 4, "ppn": 1,
        "native": {"merit": ["1.5", "1.5", "1.5"], "wall_s": [3.0, 3.1, 3.2]}, "machines": {"aurora": row},
        "finding": {"machine": "aurora", "compute": "replay", "variants": list(variants)},
    }  # fmt: skip


_BETTER = (variant("as it is", 1.0), variant("memory", 0.8), variant("spread", 1.1))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rank": 3}, "solver.toml: unknown field rank; accepted are arguments, "),
        ({"name": "other"}, "solver.toml: unknown field name: an application is called as its folder is"),
        ({"ranks": "4"}, "solver.toml: ranks = '4': accepted is a whole number"),
        ({"ranks": True}, "solver.toml: ranks = True: accepted is a whole number"),
        ({"mpi": "mvapich"}, 'solver.toml: mpi = "mvapich": accepted is mpich, openmpi'),
        ({"merit": {"name": "energy"}}, "solver.toml: merit: the field pattern is missing"),
        ({"merit": {"name": "energy", "pattern": "("}}, "solver.toml: merit.pattern: missing [)]"),
        (
            {"merit": {"name": "energy", "pattern": "energy"}},
            "solver.toml: merit.pattern has 0 groups: accepted is one",
        ),
        ({"environment": {"OMP_NUM_THREADS": 2}}, "solver.toml: environment = .*: accepted is a table of texts"),
        ({"finding": {**_SOLVER["finding"], "best": "fast"}}, 'solver.toml: finding.best = "fast": there is no such'),
        ({"finding": {**_SOLVER["finding"], "compute": "some"}}, 'finding.compute = "some": accepted is replay, none'),
    ],
)
def test_a_field_that_cannot_be_used_is_a_sentence(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        solver(**changes)


@pytest.mark.parametrize("name", application.names())
def test_each_folder_of_applications_can_be_used(name: str) -> None:
    made = application.read(name)
    assert 4 <= made.ranks <= 32
    assert all(path.exists() for path in made.inputs)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--only", "nothing"), 'there is no application "nothing"; there are '),
        (("--only", "pw", "--machine", "nowhere"), "nowhere"),
    ],
)
def test_what_is_not_there_is_one_sentence(options: tuple[str, ...], says: str) -> None:
    command = [sys.executable, str(ROOT / "tool" / "applications.py"), *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("applications: ")
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("native", "here", "expected"),
    [
        (["1.5", "1.5"], "1.5", "equal"),
        (["1.5", "1.6"], "1.55", "within the native runs"),
        (["1.5", "1.5"], "1.50001", "different"),
        (["PASSED"], "PASSED", "equal"),
        (["PASSED"], "FAILED", "different"),
    ],
)
def test_a_figure_is_as_natively_or_within_what_the_native_runs_differ_by(
    native: list[str], here: str, expected: str
) -> None:
    assert judge.merit(native, here) == expected


def test_a_finding_holds_as_long_as_what_it_names_is_best_by_more_than_noise() -> None:
    finding = solver().finding
    assert finding is not None
    assert judge.claim(finding, list(_BETTER)) == ""
    assert judge.claim(finding, [_BETTER[0], variant("memory", 0.97), _BETTER[2]]) == "memory is not better by 5%"
    assert judge.claim(finding, [*_BETTER[:2], variant("spread", 0.7)]) == "spread is better than memory"
    assert judge.claim(finding, [*_BETTER[:2], variant("spread", 0.795)]) == ""
    noisy = {**_BETTER[1], "most": 1.02}
    assert judge.claim(finding, [_BETTER[0], noisy, _BETTER[2]]) == "memory is not better by 5%"


def test_a_figure_that_is_within_the_spread_is_not_stated() -> None:
    claimed = solver(finding={**_SOLVER["finding"], "says": "{memory} less, {spread} more."})
    assert claimed.finding is not None
    assert judge.claim(claimed.finding, list(_BETTER)) == ""
    wide = {**_BETTER[2], "least": 1.005}
    says = "what it says of spread is less than 5%, or no more than the runs differ by"
    assert judge.claim(claimed.finding, [*_BETTER[:2], wide]) == says
    text = page.render([(claimed, measured(*_BETTER[:2], wide))])
    assert f"\nNo finding: {says}.\n" in text
    assert "| spread | 1.1 s | 1.005 s to 1.111 s | +10.0 %, within the spread |" in text
    assert " more." not in text


def test_that_nothing_makes_a_difference_holds_until_something_does() -> None:
    finding = solver(finding={**_SOLVER["finding"], "best": "", "says": "No."}).finding
    assert finding is not None
    assert judge.claim(finding, [variant("as it is", 1.0), variant("memory", 0.99), variant("spread", 1.0)]) == ""
    assert judge.claim(finding, list(_BETTER)) == "memory differs by -20%"


def test_a_recording_that_did_not_fit_is_no_finding() -> None:
    finding = solver().finding
    assert finding is not None
    unfit = {**_BETTER[1], "health": ["replay_mismatch"]}
    assert judge.claim(finding, [_BETTER[0], unfit, _BETTER[2]]) == "the program did not do what was recorded"


def test_a_finding_that_was_changed_has_to_be_measured_again() -> None:
    finding = solver().finding
    assert finding is not None
    assert judge.claim(finding, list(_BETTER[:2])) == "other variants were measured"


def test_the_page_has_what_was_measured() -> None:
    text = page.render([(solver(), measured(*_BETTER)), (solver(left_out="it has no MPI"), None)])
    assert (
        "| solver 1.0 | 4 | equal | aurora | 6.0 | 1.5 | 1.1 | computing 60 %; of the time in MPI MPI_Allreduce 75 % |"
        in text
    )
    assert "| computing / communicating / waiting | 60 % / 20 % / 20 % |" in text
    assert "| against compute | 1.50 |" in text
    assert "| ranks that compute at once, on average | 1.60 |" in text
    assert "| not sure | not measured |" in text
    assert "| warnings | none |" in text
    assert "| memory | 800 ms | 792 ms to 808 ms | -20.0 % |" in text
    assert "\nIn memory it takes 20 % less.\n" in text
    assert "## Left out\n\n* A solver: ten steps: it has no MPI\n" in text


def test_the_page_has_the_warnings_and_what_is_not_sure() -> None:
    made = measured(*_BETTER)
    made["machines"]["aurora"] |= {"warnings": ["spinning: rank 1", "x: y"], "looked_s": 0.1, "unsure_share": 0.0123}
    text = page.render([(solver(), made)])
    assert "| not sure | 1.23 % |" in text
    assert "| warnings | spinning: rank 1; x: y |" in text


def test_what_no_longer_holds_is_said() -> None:
    said = judge.does_not_hold(solver(), measured(*_BETTER[:2], variant("spread", 0.5), merit="1.6"))
    assert said == [
        "solver: energy is 1.6 on aurora, natively 1.5, 1.5, 1.5",
        "solver: its finding does not hold: spread is better than memory",
    ]


def test_a_wheels_mpi_is_not_given_debians_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert "LD_LIBRARY_PATH" not in measure.environment(application.read("lammps"))
    # Others have their launcher from Debian, if not themselves.
    for name in ("pw", "nwchem-scf-mpich", "neuron"):
        assert str(debian.library_folder()) in measure.environment(application.read(name))["LD_LIBRARY_PATH"]


def test_what_fits_debians_python_is_installed_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And not in place of what dryfly's own environment has of it."""
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(debian, "fetch", lambda _: None)
    monkeypatch.setattr(debian, "PYPI", tmp_path)
    monkeypatch.setattr(install, "_run", lambda *command: ran.append(command))
    monkeypatch.setattr(install.libraries, "select", lambda _: None)
    install.install(application.read("meep"))
    assert [command[-2:] for command in ran] == [(str(tmp_path), "matplotlib==3.9.4")]
    (tmp_path / "matplotlib-3.9.4.dist-info").mkdir()
    (tmp_path / "matplotlib-3.9.4.dist-info" / "METADATA").write_text("Name: matplotlib\nVersion: 3.9.4\n")
    install.install(application.read("meep"))
    assert len(ran) == 1
    install.install(solver(pypi=["dryfly-has-no-such==1"]))
    assert "--target" not in ran[-1]
    assert ran[-1][-1] == "dryfly-has-no-such==1"


def test_a_command_that_fails_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^sh -c echo no >&2; exit 3 ended with status 3: no$"):
        process.run(["/bin/sh", "-c", "echo no >&2; exit 3"], folder=tmp_path, environment={})
    with pytest.raises(RunError, match=r"^nothing cannot be executed: No such file or directory$"):
        process.run(["nothing"], folder=tmp_path, environment={})


def test_nothing_of_a_command_stays(tmp_path: Path) -> None:
    ran = process.run(["/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], folder=tmp_path, environment={})
    deadline = time.monotonic() + 10
    while Path(f"/proc/{int(ran.output)}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_is_installed_here_is_unpacked_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """apt-get is asked as on a computer where nothing is installed; what every compiler brings is left out."""
    apt = tmp_path / "apt-get"
    apt.write_text(
        "#!/bin/sh\n"
        """case "$*" in *Dir::State::status=/dev/null*) ;; *) exit 0;; esac\n"""
        "echo 'Inst libc6 (2.36 Debian [amd64])'\n"
        """case "$*" in *solver*) echo 'Inst libpmix2 (4.2 Debian [amd64])'; echo 'Inst solver (1.0 Debian)';; esac\n"""
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert debian._needed(["solver"]) == {"libpmix2": "4.2", "solver": "1.0"}
