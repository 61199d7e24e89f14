"""`dryfly validate --native` on this computer as several hosts: MPICH's mpiexec has an agent in place of ssh.

Nothing is slow here, and the box is busy with other tests, so limits are wide and what is looked at is the procedure.
What it finds on slow links, and does not find on good ones, has tests on hosts in namespaces: native_cluster.py.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Dryfly, Start
from harness import Started, script

from dryfly.mpi.libraries import MpiLibrary

_WIDE = "[tolerance]\n" + "".join(
    f"{measure} = 1e6\n" for measure in ("memory", "cpu", "loopback", "nic", "latency", "pair", "groups", "system")
)
_STARTS = 4  # of the launcher before a level: all hosts are asked, and steps of three kinds of runs are tried

# HOST COMMAND..., run here and noted; hosts that a file `lost` names, with the number of starts after which, are lost.
_AGENT = """\
#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done
host=$1
shift
echo $host >> {folder}/started
export STAND_IN_HOST=$host
after=$(sed -n "s/^$host //p" {folder}/lost)
if [ -n "$after" ] && [ $(grep -c "^$host$" {folder}/started) -gt $after ]; then
  echo "ssh: connect to host $host port 22: No route to host" >&2
  exit 255
fi
exec sh -c "$*"
"""


# The hosts would be one computer by their name as well.
_UNAME = """\
#!/bin/sh
[ "$1" = -n ] && [ -n "$STAND_IN_HOST" ] && echo $STAND_IN_HOST && exit
exec {uname} "$@"
"""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    folder: Path
    environment: dict[str, str]
    limits: Path

    def words(self, *words: str) -> tuple[str, ...]:
        return ("validate", "--native", "--hosts", "one,two,three", "--limits", str(self.limits), *words)

    def lose(self, host: str, after: int) -> None:
        (self.folder / "lost").write_text(f"{host} {after}\n", encoding="ascii")

    def starts(self) -> int:
        """Of the launcher until now."""
        return (self.folder / "started").read_text(encoding="ascii").count("one\n")


@pytest.fixture
def cluster(tmp_path: Path, library: MpiLibrary) -> Iterator[Cluster]:
    limits = tmp_path / "limits.toml"
    limits.write_text(_WIDE, encoding="ascii")
    (tmp_path / "lost").touch()
    agent = script(tmp_path / "agent", _AGENT.format(folder=tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "names").mkdir()
    script(tmp_path / "names/uname", _UNAME.format(uname=shutil.which("uname")))
    environment = {
        "PATH": f"{tmp_path}/names:{library.prefix}/bin:{os.environ['PATH']}",
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": str(agent),
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
    }
    yield Cluster(folder=tmp_path, environment=environment, limits=limits)
    assert list(work.glob(".*")) == []  # no file stays


def _report(cluster: Cluster) -> dict[str, Any]:
    return dict(json.loads((cluster.folder / "v.json").read_text(encoding="utf-8")))


def test_all_levels_are_measured_and_a_second_run_needs_nothing_but_a_trial(dryfly: Dryfly, cluster: Cluster) -> None:
    work, good = cluster.folder / "work", str(cluster.folder / "v.json")
    words = cluster.words("--out", "kept", "--json", good)
    ended = dryfly(*words, environment=cluster.environment, cwd=work).succeeded()
    assert "3 hosts one,two,three, 1 NIC each; MPICH Version:" in ended.stdout
    assert "12 steps, 5 times each: about " in ended.stdout
    report = _report(cluster)
    assert (report["network"], report["result"], report["use"]["nodes"]) == ("native", "pass", ["one", "two", "three"])
    assert [(level["name"], level["steps"], level["pairs"]) for level in report["levels"]] == [
        ("node", 3, 12), ("switch", 6, 6), ("group", 3, 3), ("pair", 0, 0), ("system", 0, 0)
    ]  # fmt: skip
    assert sorted({measure for measure, _, time_s in report["figures"] if time_s > 0}) == [
        "cpu", "latency", "loopback", "memory", "nic", "pair"
    ]  # fmt: skip
    before = cluster.starts()
    assert before == _STARTS + 4  # memory, NICs to themselves, switch, group
    dryfly(*words, "--baseline", good, environment=cluster.environment, cwd=work).succeeded()
    assert cluster.starts() == before + _STARTS
    assert _report(cluster)["figures"] == report["figures"]
    other = dryfly(*cluster.words("--baseline", good, "-N", "2"), environment=cluster.environment, cwd=work)
    assert (other.exit_status, "it is of 3 nodes that are not these 2" in other.stderr) == (2, True)


def test_a_host_that_does_not_answer_is_named_before_anything_is_measured(dryfly: Dryfly, cluster: Cluster) -> None:
    cluster.lose("two", after=0)
    ended = dryfly(*cluster.words(), environment=cluster.environment, cwd=cluster.folder / "work")
    assert (ended.exit_status, ended.stdout) == (2, "")
    assert "host two does not answer by hydra: ssh: connect to host two port 22: No route" in ended.stderr


def test_one_computer_by_two_names_is_refused(dryfly: Dryfly, cluster: Cluster) -> None:
    (cluster.folder / "names/uname").unlink()
    ended = dryfly(*cluster.words(), environment=cluster.environment, cwd=cluster.folder / "work")
    assert (ended.exit_status, ended.stdout) == (2, "")
    assert f"--hosts: one and two are one computer, {os.uname().nodename}; accepted is each host once" in ended.stderr


def test_hosts_without_the_cores_of_the_machine_s_nodes_are_refused(dryfly: Dryfly, cluster: Cluster) -> None:
    """Crusher's ranks are bound all over 64 cores; of the user's own binding nothing is known."""
    words = cluster.words("--machine", "crusher", "--level", "node")
    ended = dryfly(*words, environment=cluster.environment, cwd=cluster.folder / "work")
    if (os.cpu_count() or 1) < 64:
        assert (ended.exit_status, ended.stdout) == (2, "")
        assert "--machine crusher: on its nodes ranks are bound to cores " in ended.stderr
        assert "and one has only 0" in ended.stderr
    free = (*words, "--launcher-options=-bind-to none")
    dryfly(*free, environment=cluster.environment, cwd=cluster.folder / "work").succeeded()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--launcher-options=-bogus",), "--launcher-options -bogus: with them hydra starts nothing: unrecognized arg"),
        ((), "hydra starts nothing, whichever host it is asked for: ssh: no agent"),
    ],
)
def test_a_launcher_that_starts_nothing_is_blamed_and_no_host(
    words: tuple[str, ...], sentence: str, dryfly: Dryfly, cluster: Cluster
) -> None:
    environment = dict(cluster.environment)
    if not words:
        environment["HYDRA_LAUNCHER_EXEC"] = str(
            script(cluster.folder / "no-agent", "#!/bin/sh\necho 'ssh: no agent' >&2; exit 255\n")
        )
    ended = dryfly(*cluster.words(*words), environment=environment, cwd=cluster.folder / "work")
    assert (ended.exit_status, ended.stdout) == (2, "")
    assert sentence in ended.stderr


def test_a_host_that_is_lost_is_out_and_the_rest_goes_on(dryfly: Dryfly, cluster: Cluster) -> None:
    cluster.lose("two", after=_STARTS + 2)  # after the level of nodes
    words = cluster.words("--json", str(cluster.folder / "v.json"))
    ended = dryfly(*words, environment=cluster.environment, cwd=cluster.folder / "work")
    assert ended.exit_status == 1
    report = _report(cluster)
    assert [(finding["kind"], finding["place"], finding["level"]) for finding in report["findings"]] == [
        ("node", "two", "switch")
    ]
    assert "no answer any more: ssh: connect to host two" in report["findings"][0]["evidence"][0]
    assert (report["use"]["nodes"], report["exclude"]["nodes"]) == (["one", "three"], ["two"])
    assert [level["nodes"] for level in report["levels"]] == [3, 2, 2, 2, 2]


_PALS = """#!/bin/sh
[ "$1" = --version ] && echo "PALS mpiexec version 1.7.1" && exit
hosts=$2 ranks=$6
shift 6
exec mpiexec.hydra -f $hosts -n $ranks "$@"
"""
_FLUX = """#!/bin/sh
ranks=${3#*=} hosts=${4#*=hosts:}
shift 4
exec mpiexec.hydra -hosts $hosts -n $ranks "$@"
"""


@pytest.mark.parametrize(
    ("name", "program", "text"), [("pals", "mpiexec", _PALS), ("flux", "flux", _FLUX)], ids=["pals", "flux"]
)
def test_launchers_that_are_not_here_by_stand_ins(
    name: str, program: str, text: str, dryfly: Dryfly, cluster: Cluster, library: MpiLibrary
) -> None:
    """Of flux hosts are told by the names that they say they have."""
    script(cluster.folder / program, text)
    uname = "#!/bin/sh\nset -- one two three\nshift $PMI_RANK\necho $1\n"
    script(cluster.folder / "uname", uname)
    environment = {
        **cluster.environment,
        "PATH": f"{cluster.folder}:{cluster.environment['PATH']}",
        "MPICC": f"{library.prefix}/bin/mpicc",
    }
    words = cluster.words("--launcher", name, "--level", "switch")
    ended = dryfly(*words, environment=environment, cwd=cluster.folder / "work").succeeded()
    assert f"started by {name}" in ended.stdout
    assert "passed   3 of 3 nodes, 3 of 3 NICs" in ended.stdout


def test_what_is_far_from_the_machine_s_model_everywhere_is_one_finding_and_excludes_nobody(
    dryfly: Dryfly, cluster: Cluster
) -> None:
    """Sockets of this computer for Slingshot's NICs: a stream takes several times as long as 25 GB/s."""
    cluster.limits.write_text(_WIDE.replace("nic = 1e6", "nic = 0.1"), encoding="ascii")
    words = cluster.words("--machine", "testbed", "--launcher-options=-bind-to none", "--level", "switch")
    words = (*words, "--json", str(cluster.folder / "v.json"))
    ended = dryfly(*words, environment=cluster.environment, cwd=cluster.folder / "work")
    assert ended.exit_status == 1, ended.stderr
    (finding,) = _report(cluster)["findings"]
    assert (finding["measure"], finding["place"], finding["unit"]) == ("nic", "3 of 3", "GB/s")
    assert finding["measured"] < finding["limit"] < 25
    assert _report(cluster)["exclude"]["nodes"] == []


def _rank_of_level(run: Started, level: str) -> tuple[int, int]:
    """The process of a rank other than the first, and its number, once the level has begun."""
    run.wait_for_line(f"level {level}")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for process in run.processes():
            if process.name != "probe":
                continue
            variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            rank = next(int(text[9:]) for text in variables if text.startswith(b"PMI_RANK="))
            if rank > 0:
                return process.pid, rank
        time.sleep(0.01)
    raise AssertionError("no rank was seen")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "words"), [(signal.SIGKILL, "RUNNING AT"), (signal.SIGSTOP, "rank 0 of the node has stopped")]
)
def test_a_rank_that_dies_or_stops_takes_its_host_out(
    how: signal.Signals, words: str, start: Start, cluster: Cluster
) -> None:
    cluster.limits.write_text(_WIDE + "[limit]\nrepeats = 25\nhang_s = 6\n", encoding="ascii")
    command = cluster.words("--level", "switch", "--json", str(cluster.folder / "v.json"))
    run = start(*command, environment=cluster.environment, cwd=cluster.folder / "work")
    pid, rank = _rank_of_level(run, "switch")
    time.sleep(1)  # until it is in a step: the level takes some four seconds
    os.kill(pid, how)
    ended = run.wait(limit_s=100)
    assert run.processes() == []  # of memory there is some: that of an MPICH whose ranks were killed
    assert ended.exit_status == 1, ended.stderr
    (finding,) = _report(cluster)["findings"]
    assert (finding["kind"], finding["place"], finding["level"]) == ("node", ("one", "two", "three")[rank], "switch")
    assert words in finding["evidence"][0]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_nothing_stays_when_the_command_is_ended_and_the_next_one_goes_on(
    how: signal.Signals, start: Start, dryfly: Dryfly, cluster: Cluster
) -> None:
    cluster.limits.write_text(_WIDE + "[limit]\nrepeats = 12\n", encoding="ascii")
    work = cluster.folder / "work"
    words = cluster.words("--out", "kept")
    run = start(*words, environment=cluster.environment, cwd=work)
    _rank_of_level(run, "switch")
    run.process.send_signal(how)
    run.wait(limit_s=20)
    run.require_nothing_left()
    stayed = list((work / "kept").glob(".*"))
    assert len(stayed) == (how is signal.SIGKILL)  # then the next one removes it
    before = cluster.starts()
    dryfly(*words, environment=cluster.environment, cwd=work).succeeded()
    assert cluster.starts() == before + _STARTS + 2  # switch and group; the nodes' own level is there
    assert list((work / "kept").glob(".*")) == []


def test_a_library_whose_ranks_the_launcher_does_not_start_is_refused(
    dryfly: Dryfly, cluster: Cluster, library: MpiLibrary
) -> None:
    """As with srun that was not told the library's PMI: each rank is a program of its own."""
    launcher = """#!/bin/sh
[ "$1" = --version ] && echo HYDRA && exit
count=$6
shift 6
for rank in $(seq 0 $((count - 1))); do STAND_IN_HOST=host$rank SLURM_PROCID=$rank "$@" || exit; done
"""
    script(cluster.folder / "mpiexec", launcher)
    path = f"{cluster.folder}:{cluster.environment['PATH']}"
    environment = {**cluster.environment, "PATH": path, "MPICC": f"{library.prefix}/bin/mpicc"}
    ended = dryfly(*cluster.words(), environment=environment, cwd=cluster.folder / "work")
    assert ended.exit_status == 2
    assert "MPI has 1 ranks and not the 6 that were started: launcher and MPI library do not fit" in ended.stderr
