"""Ranks started by PALS' mpiexec and by flux run: by stand-ins (launcher_stand_ins.py), and where a flux is on PATH by
a Flux instance of the tests' own. Slurm's are in slurm_launcher.py."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import launcher_stand_ins
import pytest
from conftest import Dryfly, Start
from harness import Started, script
from test_run_launchers import _ENDINGS, Built, built

from dryfly.base.errors import UserError
from dryfly.mpi import batch_launchers, launchers
from dryfly.mpi import libraries as mpi

__all__ = ["built"]

_RUN = ("run", "-N", "2", "--ppn", "2", "--compute", "none")


def _flux_is_installed() -> bool:
    """Another project's command has the name too."""
    if shutil.which("flux") is None:
        return False
    said = subprocess.run(["flux", "version"], capture_output=True, text=True, check=False).stdout
    return "libflux-core" in said


_REAL_FLUX = ["real flux"] if _flux_is_installed() else []


@contextlib.contextmanager
def _flux_instance() -> Iterator[dict[str, str]]:
    with subprocess.Popen(
        ["flux", "start", "sh", "-c", "echo $FLUX_URI; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as instance:
        assert instance.stdout is not None
        yield {"FLUX_URI": instance.stdout.readline().strip()}
        instance.communicate(timeout=30)  # the end of its input is its end


@pytest.fixture(scope="session")
def places() -> Iterator[dict[str, dict[str, str]]]:
    """The environment in which each launcher is found."""
    with contextlib.ExitStack() as stack:
        stand_ins = stack.enter_context(launcher_stand_ins.on_path())
        found = {"pals": stand_ins, "flux": stand_ins}
        if _REAL_FLUX:
            found["real flux"] = stack.enter_context(_flux_instance())
        yield found


@pytest.fixture(params=["pals", "flux", *_REAL_FLUX])
def launcher(request: pytest.FixtureRequest, places: dict[str, dict[str, str]]) -> tuple[str, dict[str, str]]:
    """Its name and the environment in which it is found."""
    return request.param.split()[-1], places[request.param]


def test_a_launchers_own_numbers_stay_and_others_are_added(
    launcher: tuple[str, dict[str, str]], dryfly: Dryfly, tmp_path: Path
) -> None:
    """PALS has one node, this computer. What was set around the run is none of a rank's."""
    name, environment = launcher
    around = {**environment, "TMPDIR": str(tmp_path), "PALS_RANKID": "9", "SLURM_LOCALID": "9"}
    numbers = "$PALS_RANKID $PALS_LOCAL_RANKID $SLURM_PROCID $SLURM_LOCALID $OMPI_COMM_WORLD_LOCAL_SIZE"
    run = dryfly(*_RUN, "--launcher", name, "--", "sh", "-c", f"echo numbers {numbers}", environment=around)
    found = re.findall(r"^numbers (\d+) (\d+) (\d+) (\d+) (\d+)$", run.stdout, re.MULTILINE)
    local = ["0", "1", "2", "3"] if name == "pals" else ["0", "1", "0", "1"]
    assert sorted(found) == [(str(rank), local[rank], str(rank), str(rank % 2), "2") for rank in range(4)]


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_the_run_is_the_same_whoever_starts_it(
    family: str, launcher: tuple[str, dict[str, str]], dryfly: Dryfly, built: Built, tmp_path: Path
) -> None:
    name, environment = launcher
    ours = dryfly(*_RUN, "--", built(family)).succeeded()
    theirs = dryfly(
        *_RUN, "--launcher", name, "--", built(family), environment={**environment, "TMPDIR": str(tmp_path)}
    ).succeeded()
    expected = [f"rank {rank} on {node} {node} sum 6" for rank, node in enumerate(("t0", "t0", "t1", "t1"))]
    assert sorted(theirs.stdout.splitlines()) == expected
    assert theirs.fingerprint == ours.fingerprint
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", ["crash", "leave"])
def test_the_rank_that_ends_the_job_is_named(
    how: str, launcher: tuple[str, dict[str, str]], dryfly: Dryfly, built: Built
) -> None:
    name, environment = launcher
    run = dryfly(*_RUN, "--launcher", name, "--", built("mpich"), how, environment=environment)
    status, sentence = _ENDINGS[how]
    assert run.exit_status == status
    assert re.search(sentence, run.stderr), run.stderr


def _command_of_launcher(run: Started) -> int:
    """The child of dryfly-launch, which itself has a child of its own name."""
    name_of = {process.pid: process.name for process in run.processes()}

    def parent(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    return next(
        pid
        for pid, name in name_of.items()
        if name not in ("dryfly-launch", "launched") and name_of.get(parent(pid)) == "dryfly-launch"
    )


@pytest.mark.parametrize(
    ("victim", "number", "sentence"),
    [
        ("dryfly", signal.SIGINT, ""),  # Ctrl-C
        ("dryfly", signal.SIGKILL, ""),
        (
            "launcher",
            signal.SIGKILL,
            r"the launcher \(NAME\) was killed by signal 9|was ended by NAME, or from outside",
        ),
        ("dryfly-conductor", signal.SIGKILL, r"the simulator \(dryfly-conductor\) was killed by signal 9"),
        ("launched", signal.SIGKILL, r"rank \d on t\d \(pid \d+\) was killed by signal 9"),
    ],
)
def test_nothing_stays_when_a_process_is_ended(
    victim: str,
    number: signal.Signals,
    sentence: str,
    launcher: tuple[str, dict[str, str]],
    start: Start,
    built: Built,
) -> None:
    name, environment = launcher
    run = start(*_RUN, "--launcher", name, "--", built("mpich"), "stay", environment=environment)
    run.wait_for_line("rank 0")
    if victim == "launcher":
        pid = _command_of_launcher(run)
    else:
        pid = run.process.pid if victim == "dryfly" else run.pid_of(victim)
    os.kill(pid, number)
    ended = run.wait(limit_s=10)
    assert ended.exit_status != 0
    assert re.search(sentence.replace("NAME", name), ended.stderr), ended.stderr
    run.require_nothing_left()


@pytest.fixture
def here(places: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Within reach of the stand-ins, outside of any allocation."""
    for variable in ("PBS_NODEFILE", "SLURM_JOB_NUM_NODES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in places["pals"].items():
        monkeypatch.setenv(variable, value)
    return monkeypatch


def test_an_allocation_of_several_hosts_is_refused(here: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("x1\nx1\nx2\nx3\n", encoding="utf-8")
    here.setenv("PBS_NODEFILE", str(hosts))
    with pytest.raises(UserError, match="--launcher pals: this allocation has 3 hosts"):
        batch_launchers.check("pals")
    here.setenv("STAND_IN_HOSTS", "2")
    with pytest.raises(UserError, match="--launcher flux: this allocation has 2 hosts"):
        batch_launchers.check("flux")


def test_the_one_host_of_an_allocation_is_pals(here: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("x1.example\nx1.example\n", encoding="utf-8")
    here.setenv("PBS_NODEFILE", str(hosts))
    command = batch_launchers.check("pals")(8).command
    assert command[command.index("--hosts") + 1] == "x1.example"
    assert command[command.index("-n") + 1] == "8"


def test_a_list_of_hosts_that_is_not_there_is_refused(here: pytest.MonkeyPatch) -> None:
    here.setenv("PBS_NODEFILE", "/nowhere/hosts")
    with pytest.raises(UserError, match="PBS_NODEFILE, /nowhere/hosts, cannot be read"):
        batch_launchers.check("pals")


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_the_mpiexec_of_an_mpi_library_is_not_pals(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mpiexec = mpi.select(family).wrapper("mpiexec")
    assert mpiexec is not None
    monkeypatch.setenv("PATH", str(mpiexec.parent))
    with pytest.raises(UserError, match=f"{mpiexec} is not the mpiexec of PALS"):
        batch_launchers.check("pals")


def test_a_command_that_cannot_be_run_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script(tmp_path / "mpiexec", "#!/nowhere/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=f"{tmp_path}/mpiexec cannot be run: No such file or directory"):
        batch_launchers.check("pals")


def test_flux_without_an_instance_is_refused(here: pytest.MonkeyPatch) -> None:
    here.delenv("FLUX_URI")
    with pytest.raises(UserError, match=r"there is no Flux instance here .* use dryfly"):
        batch_launchers.check("flux")


@pytest.mark.parametrize("name", batch_launchers.NAMES)
def test_a_launcher_that_is_not_there_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match=f"--launcher {name}: .* is not found on PATH"):
        launchers.prepare(name, mpi.select("mpich"), node_of_rank=("t0",))
