"""`dryfly validate --native` without a cluster: hosts, switches, launchers, what hosts say, who is to blame, the node's
own tools. What it finds on hosts is in tests/mpi/test_run_native.py."""

from __future__ import annotations

import io
import json
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dryfly.base.errors import RunError, UserError
from dryfly.cli.main import cli
from dryfly.machine.load import load
from dryfly.validate import judge, nodelist, plan
from dryfly.validate.asked import Asked, Native
from dryfly.validate.console import Console
from dryfly.validate.native import facts, fit, hosts, job, launchers, program, topology
from dryfly.validate.native.cluster import Cluster
from dryfly.validate.native.job import Ended
from dryfly.validate.native.launchers import Launcher
from dryfly.validate.native.measuring import Natively, Runner, Trial
from dryfly.validate.native.node_check import HostCheck
from dryfly.validate.native.progress import Bar, duration
from dryfly.validate.plan import Step
from dryfly.validate.probe import Measured
from dryfly.validate.procedure import of_simulated
from dryfly.validate.settings import settings
from dryfly.validate.subject import NodeFailed
from dryfly.validate.wiring import nic_place

NOT_TO_BE_RUN = Launcher(name="hydra", path="/nowhere/mpiexec")

# --- Hosts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a[01-03,7],b7", ["a01", "a02", "a03", "a7", "b7"]),
        ("x[0-1]c[3-4]n0", ["x0c3n0", "x0c4n0", "x1c3n0", "x1c4n0"]),
        ("10.0.0.1,login.site.org", ["10.0.0.1", "login.site.org"]),
    ],
)
def test_a_list_of_slurm_is_read(text: str, expected: list[str]) -> None:
    assert nodelist.names(text) == expected
    assert nodelist.names(nodelist.slurm(expected)) == expected


def test_machine_files_of_both_libraries_are_read(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\nn1\nn2:4\nn3 slots=4 max_slots=8  # the new one\n\nn4.site.org\n", encoding="utf-8")
    assert hosts.find(str(file)) == ("n1", "n2", "n3", "n4.site.org")


def test_without_hosts_they_are_those_of_the_job(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("n1\nn1\nn2\nn2\n", encoding="utf-8")  # PBS: a line for each process
    assert hosts.find(None, {"PBS_NODEFILE": str(file)}) == ("n1", "n2")
    assert hosts.find(None, {"SLURM_JOB_NODELIST": "n[1-2,9]"}) == ("n1", "n2", "n9")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("n1,n2,n1", "n1 is there twice"),
        ("n[1-", '"n[1-" is no host'),
        ("n1,,n2", '"" is no host'),
        ("", "there are no hosts in it"),
        ("./nowhere", "No such file"),
        ("nofile.txt", "--hosts nofile.txt: No such file or directory; accepted is a file with a host a line"),
        ("rack/hosts", "--hosts rack/hosts: No such file"),
        (None, "this is no job of Slurm, PBS or Flux"),
    ],
)
def test_hosts_that_cannot_be_used_are_refused(asked: str | None, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        hosts.find(asked, {})
    assert sentence in str(error.value)


def test_a_line_that_names_no_host_is_refused_with_its_number(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("n1\nn2, n3\n", encoding="utf-8")
    with pytest.raises(UserError, match='line 2: "n2, n3"'):
        hosts.find(str(file))


# --- Switches

_TREE = """\
# of the cluster
SwitchName=s0 Nodes=n[0-1]
SwitchName=s1 Nodes=n[2-3] LinkSpeed=1
switchname=s2 nodes=n4
SwitchName=g0 Level=1 Nodes=n[0-3] Switches=s[0-1]
SwitchName=g1 Switches=s2
"""


def test_leaf_switches_are_switches_and_what_is_above_them_groups(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(_TREE, encoding="utf-8")
    wiring = topology.wiring(["n4", "n0", "n3", "n2"], 2, str(file))
    assert wiring.switch_of_nic == (0, 0, 1, 1, 2, 2, 2, 2)
    assert [wiring.group_of_node(node) for node in range(4)] == [0, 1, 1, 1]
    assert wiring.nics_of_node[3] == (6, 7)
    assert wiring.cables == ()
    levels = {
        name: plan.level_steps(name, wiring, range(4), settings().sizes) for name in ("switch", "group", "system")
    }
    places = {frozenset(each.places) for step in levels["switch"] for each in step.probes}
    neighbours = {frozenset((nic_place(a), nic_place(b))) for a in (4, 5) for b in (6, 7)}
    assert places == neighbours | {frozenset((nic_place(alone),)) for alone in range(4)}
    assert all(levels.values())


def test_without_a_file_all_hosts_are_on_one_switch() -> None:
    wiring = topology.wiring(["a", "b"], 1, None)
    assert (wiring.switch_of_nic, wiring.group_of_switch) == ((0, 0), (0,))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("SwitchName=s0 Nodes=a", "no switch has b"),
        ("SwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=b", "b is at s0 and s1"),
        ("Nodes=a,b", 'line 1: "Nodes=a,b"'),
        ("SwitchName=s0 Nodes=a[", "a[ is no list"),
        ("SwitchName=s0 Nodes=a,b\nSwitchName=g0 Switches=s0\nSwitchName=g1 Switches=s0", "s0 is below g0 and g1"),
    ],
)
def test_a_topology_that_cannot_be_used_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        topology.wiring(["a", "b"], 1, str(file))
    assert sentence in str(error.value)


# --- Launchers


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """A folder that alone is on PATH, and what writes a program into it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "date", "uname", "tr", "sleep"):
        path = shutil.which(name)
        assert path is not None
        (folder / name).symlink_to(path)
    monkeypatch.setenv("PATH", str(folder))

    def write(name: str, script: str) -> Path:
        path = folder / name
        path.unlink(missing_ok=True)  # it may be a link to the system's own
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    return write


@pytest.mark.parametrize(
    ("says", "name", "version"),
    [
        ("HYDRA build details:\n    Version:    4.2.1", "hydra", "4.2.1"),
        ("mpiexec (OpenRTE) 4.1.4", "prterun", "4.1.4"),
        ("mpiexec (Open MPI) 5.0.11", "prterun", "5.0.11"),
        ("PALS mpiexec version 1.7.1", "pals", "1.7.1"),
    ],
)
def test_mpiexec_is_asked_whose_it_is(
    says: str, name: str, version: str, bin_folder: Callable[[str, str], Path]
) -> None:
    path = bin_folder("mpiexec", f"echo '{says}'")
    assert launchers.find(None, environment={}) == Launcher(name=name, path=str(path), version=version)
    assert launchers.find(name, environment={}).name == name


def test_in_a_job_its_own_launcher_is_taken(bin_folder: Callable[[str, str], Path]) -> None:
    bin_folder("mpiexec", "echo HYDRA")
    bin_folder("srun", "")
    bin_folder("flux", "")
    assert launchers.find(None, environment={}).name == "hydra"
    assert launchers.find(None, environment={"SLURM_JOB_ID": "1"}).name == "srun"
    assert launchers.find(None, environment={"FLUX_URI": "local"}).name == "flux"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("srun", "--launcher srun: srun is not found on PATH"),
        ("pals", "mpiexec is MPICH's mpiexec; accepted is"),
        ("aprun", "--launcher aprun: accepted is hydra, prterun, srun, pals, flux"),
    ],
)
def test_a_launcher_that_is_not_there_is_refused(
    asked: str, sentence: str, bin_folder: Callable[[str, str], Path]
) -> None:
    bin_folder("mpiexec", "echo HYDRA")
    with pytest.raises(UserError) as error:
        launchers.find(asked, environment={})
    assert sentence in str(error.value)


def test_where_no_mpiexec_is_it_is_said(bin_folder: Callable[[str, str], Path]) -> None:
    with pytest.raises(UserError, match="--native: there is no mpiexec on PATH"):
        launchers.find(None, environment={})
    bin_folder("mpiexec", "echo something else")
    with pytest.raises(UserError, match="of no kind that is known"):
        launchers.find(None, environment={})


@pytest.mark.parametrize(
    ("name", "words", "lines"),
    [
        ("hydra", "-f FILE -ppn 2 -n 4", ["b:2", "a:2"]),
        ("prterun", "--hostfile FILE --map-by ppr:2:node -n 4", ["b slots=2", "a slots=2"]),
        ("pals", "--hostfile FILE --ppn 2 -n 4", ["b", "a"]),
        ("flux", "run --nodes=2 --ntasks=4 --requires=hosts:b,a", []),
        (
            "srun",
            "--nodes=2 --ntasks=4 --nodelist=FILE --distribution=arbitrary --overcommit --kill-on-bad-exit=1 "
            "--input=none --unbuffered --job-name=dryfly",
            ["b", "b", "a", "a"],
        ),
    ],
)
def test_each_launcher_has_ranks_host_by_host(
    name: str, words: str, lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    launcher = Launcher(name=name, path="/bin/it", options=("--more",))
    file = tmp_path / "hosts"
    expected = ["/bin/it", *words.replace("FILE", str(file)).split(), "--bind", "--more"]
    assert launcher.words(["b", "a"], 2, tmp_path, ["--bind"]) == expected
    of_the_user = replace(launcher, options=("-bind-to", "none")).words(["b", "a"], 2, tmp_path, ["--bind"])
    assert of_the_user == [*expected[:-2], "-bind-to", "none"]
    assert (file.read_text(encoding="utf-8").splitlines() if lines else []) == lines


def test_ranks_are_bound_in_the_order_of_the_nics_they_measure() -> None:
    frontier = load("frontier")
    words = launchers.good_binding(replace(NOT_TO_BE_RUN, name="srun"), frontier, nics=4, ppn=4)
    assert [word.partition("=")[0] for word in words] == ["--cpu-bind", "--mem-bind"]
    # Where Frontier's NICs 0, 1, 2 and 3 are: nic_numa in data/machines/frontier.toml.
    assert words[1] == "--mem-bind=map_mem:3,1,0,2"
    assert launchers.good_binding(replace(NOT_TO_BE_RUN, name="pals"), frontier, nics=4, ppn=4)[0] == "--cpu-bind"
    assert launchers.good_binding(replace(NOT_TO_BE_RUN, name="prterun"), frontier, nics=4, ppn=4) == []


def test_without_a_compiler_wrapper_it_is_said(bin_folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    launcher = Launcher(name="hydra", path=str(bin_folder("mpiexec", "echo HYDRA")))
    with pytest.raises(UserError, match="there is no mpicc beside"):
        program.compile_probe(launcher, None, tmp_path, {})
    bin_folder("mpicc", "echo 'mpi.h: No such file' >&2; exit 1")
    with pytest.raises(UserError, match=r"does not compile with .*mpicc: mpi.h: No such file"):
        program.compile_probe(launcher, None, tmp_path, {})
    bin_folder("mpicc", "exit 3")
    with pytest.raises(UserError, match=r"does not compile with .*mpicc: exit status 3, without a word"):
        program.compile_probe(launcher, None, tmp_path, {})


# --- What hosts say


def _sysfs(folder: Path, number: int, **files: str) -> None:
    for name, text in files.items():
        file = folder / f"cxi{number}/device" / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="ascii")


_GOOD_NIC = {
    "properties__link": "up", "current_link_width": "16", "max_link_width": "16",
    "current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe",
}  # fmt: skip


def _host_says(cxi: Path) -> list[str]:
    environment = {"PATH": "/usr/bin:/bin", "PMI_RANK": "1", "SLURM_PROCID": "0"}
    command = ["sh", "-c", facts.script(str(cxi))]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()


def test_a_host_tells_of_its_nics_what_sysfs_has(tmp_path: Path) -> None:
    _sysfs(tmp_path, 0, **_GOOD_NIC, link_restarts__time_0=str(int(time.time()) - 60), link_restarts__time_1="0")
    _sysfs(tmp_path, 1, **{**_GOOD_NIC, "properties__link": "down", "current_link_width": "8"})
    said = facts.parse(["[1] noise", *_host_says(tmp_path)])[1]  # hydra's name of a rank comes before Slurm's
    assert said.name == socket.gethostname()
    assert (said.nics[0].complaints(), len(said.nics[0].flaps)) == ([], 1)
    assert 59 <= said.nics[0].flaps[0] <= 70
    wiring = topology.wiring(["a", "b"], 2, None)
    console = Console(wiring, {0: "a", 1: "b"})
    facts.tell(console, wiring.nics_of_node[1], said)
    assert [(event.kind, event.places, event.slower) for event in console.events()] == [
        ("flap", ("n2",), 1.0), ("loss", ("n3",), 1.0), ("pcie", ("n3",), 2.0)
    ]  # fmt: skip
    assert console.events()[2].text == "LnkSta: Speed 16.0 GT/s PCIe, Width x8, and it can have 16.0 GT/s PCIe, x16"


def test_a_host_that_was_cut_off_while_it_spoke_has_not_answered(tmp_path: Path) -> None:
    assert facts.parse(_host_says(tmp_path)[:-1]) == {}
    assert facts.parse(_host_says(tmp_path))[1].nics == {}


# --- Who is to blame


def _cluster(folder: Path, silent: Mapping[str, str]) -> Cluster:
    """Of a launcher that starts `sh hello` for each host by itself, all in one shell; hosts in `silent` are lost, and
    with one of them it starts nobody, as launchers do."""
    script = folder / "launcher"
    lost = "\n".join(
        f"if grep -q '^{host}:' \"$2\"; then echo '{words}'; exit 255; fi" for host, words in silent.items()
    )
    script.write_text(
        f"#!/bin/sh\n{lost}\nn=0\nwhile [ $n -lt $6 ]; do PMI_RANK=$n $7 $8; n=$((n + 1)); done\n", encoding="ascii"
    )
    script.chmod(0o755)
    return Cluster(
        hosts=("a", "b", "c", "d", "e"),
        launcher=Launcher(name="hydra", path=str(script)),
        folder=folder,
        limits=settings(native=True).native,
    )


def test_who_does_not_answer_is_found_by_halves(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, {"b": "ssh: connect to host b: No route", "e": "e: unknown host"})
    answers, silent = cluster.ask_all(range(5))
    assert sorted(answers) == [0, 2, 3]
    assert silent == {1: "ssh: connect to host b: No route", 4: "e: unknown host"}
    with pytest.raises(UserError, match=r"host b does not answer by hydra \(2 of 5 do not\): ssh: connect"):
        cluster.check_answers(range(5))
    assert sorted(_cluster(tmp_path, {}).check_answers(range(5))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "script", "sentence"),
    [
        # As srun says it without a configuration, and without a daemon.
        (
            "srun",
            "echo 'srun: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host'\n"
            "echo 'srun: fatal: Could not establish a configuration source'; exit 1",
            "Slurm does not answer here (srun: fatal: Could not establish a configuration source)",
        ),
        (
            "srun",
            "echo 'srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)'",
            "Slurm does not answer here (srun: error: Unable to allocate resources: Unable to contact",
        ),
        ("hydra", "echo $$: cannot start; exit 1", "hydra starts nothing, whichever host it is asked for: "),
        ("hydra", "echo cannot reach $(cat $2); exit 1", "host n0 does not answer by hydra (40 of 40 do not)"),
    ],
)
def test_what_the_launcher_says_of_each_host_alike_is_no_host_s_fault(
    name: str, script: str, sentence: str, bin_folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    launcher = bin_folder("launcher", script)
    cluster = replace(
        _cluster(tmp_path, {}),
        hosts=tuple(f"n{number}" for number in range(40)),
        launcher=Launcher(name=name, path=str(launcher)),
    )
    with pytest.raises(UserError) as error:
        cluster.check_answers(range(40))
    assert sentence in str(error.value)
    lost = cluster.failure(Ended(status=1, lines=(), too_long=False), range(40), 1)
    assert isinstance(lost, NodeFailed) == ("host n0" in sentence)


def test_a_host_is_asked_again_where_hydra_has_lost_what_was_said_of_it(
    bin_folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Its own lines only, as when the agent has ended before hydra reads what it has said."""
    starts = tmp_path / "starts"
    launcher = bin_folder(
        "launcher",
        f"printf x >> {starts}\n"
        f"case $(cat {starts}) in xxx | xxxxxx | xxxxxxxxx) echo ssh: no agent ;; esac\n"
        "echo '[mpiexec@vm] ui_cmd_cb (/pmci.c:51): Launch proxy failed.'; exit 255",
    )
    cluster = replace(_cluster(tmp_path, {}), hosts=("a", "b"), launcher=Launcher(name="hydra", path=str(launcher)))
    assert cluster.ask_all([0]) == ({}, {0: "ssh: no agent"})
    starts.unlink()
    with pytest.raises(UserError, match="hydra starts nothing, whichever host it is asked for: ssh: no agent"):
        cluster.check_answers([0, 1])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["[mpiexec@vm] f (/a.c:166): unrecognized argument x", "[mpiexec@vm] f (/a.c:1): error parsing"],
         "unrecognized argument x"),
        (["[proxy:0:1@one] f (/a.c:1): create process returned error"], "create process returned error"),
        (["Permission denied (publickey).", "[mpiexec@vm] f (/a.c:1): error in callback"],
         "Permission denied (publickey)."),
        (["ssh: no route", "[mpiexec@vm] f (/a.c:1): unable to reach one"], "unable to reach one"),
        ([], "exit status 1, without a word"),
    ],
)  # fmt: skip
def test_of_a_launcher_s_words_those_count_that_tell_the_cause(lines: list[str], words: str) -> None:
    assert Ended(status=1, lines=tuple(lines), too_long=False).words("one") == words


def test_options_that_the_launcher_does_not_know_are_blamed(tmp_path: Path) -> None:
    cluster = _cluster(tmp_path, {})
    script = Path(cluster.launcher.path)
    refusing = "for word; do [ $word = -bogus ] && echo unrecognized argument bogus && exit 1; done"
    script.write_text(script.read_text(encoding="ascii").replace("n=0\n", f"{refusing}\nn=0\n"), encoding="ascii")
    assert len(cluster.check_answers(range(5))) == 5
    cluster = replace(cluster, launcher=replace(cluster.launcher, options=("-bogus",)))
    with pytest.raises(UserError, match="--launcher-options -bogus: with them hydra starts nothing: unrecognized arg"):
        cluster.check_answers(range(5))


def test_one_computer_by_two_names_is_refused_and_namespaces_are_hosts() -> None:
    own = facts.parse(_host_says(Path("/nowhere")))[1]
    assert own.boot
    assert own.network.startswith("net:")
    assert own.cores
    for other in (replace(own, name="b"), replace(own, boot="b"), replace(own, network="net:[1]")):
        fit.check_twins({"one": own, "two": other})
    fit.check_twins({"one": replace(own, boot=""), "two": replace(own, boot="")})  # there is nothing to tell by
    with pytest.raises(UserError, match=f"--hosts: one and two are one computer, {own.name}"):
        fit.check_twins({"one": own, "two": own})


def test_hosts_need_the_cores_that_ranks_are_bound_to() -> None:
    crusher, hydra = load("crusher"), NOT_TO_BE_RUN
    needed = launchers.bound_to(hydra, crusher, nics=4, ppn=4)
    small, large = (facts.Facts(rank=0, cores=frozenset(range(count))) for count in (2, 128))
    fit.check_cores({"a": large, "b": facts.Facts(rank=1)}, needed, "crusher")
    with pytest.raises(UserError, match=r"--machine crusher: .* are bound to cores .*, and b has only 0-1; accepted"):
        fit.check_cores({"a": large, "b": small}, needed, "crusher")
    for unbound in (replace(hydra, name="prterun"), replace(hydra, options=("-bind-to", "none"))):
        assert launchers.bound_to(unbound, crusher, nics=4, ppn=4) == frozenset()


def test_flux_numbers_ranks_in_an_order_of_its_own(bin_folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    bin_folder("uname", "echo $HOST.site.org")
    flux = bin_folder("flux", "n=0; for HOST in a b c; do HOST=$HOST FLUX_TASK_RANK=$n $5 $6; n=$((n + 1)); done")
    cluster = Cluster(
        hosts=("c", "a", "b"),
        launcher=Launcher(name="flux", path=str(flux)),
        folder=tmp_path,
        limits=settings(native=True).native,
        environment={"PATH": str(flux.parent)},
    )
    answers = cluster.check_answers(range(3))
    assert {cluster.hosts[node]: said.name for node, said in answers.items()} == {
        name: f"{name}.site.org" for name in "abc"
    }
    assert cluster.in_order(answers).hosts == ("a", "b", "c")


@pytest.mark.parametrize(
    ("said", "node", "words"),
    [
        (["=   BAD TERMINATION", "=   PID 451 RUNNING AT c", "=   EXIT CODE: 9"], 2, "PID 451 RUNNING AT c"),
        (["prterun noticed that process rank 1 with PID 527 on node d exited on"], 3, "process rank 1"),
        (["srun: error: b: task 1: Killed", "srun: error: a: task 0: Terminated"], 1, "task 1: Killed"),
        (["c.site.org: rank 4 died from signal 9"], 2, "rank 4 died"),
        # Two ranks of a host; those of host 3 say nothing.
        ([f"probe: rank {rank} waits in step 7 for all" for rank in (0, 1, 2, 3, 4, 5, 8, 9)], 3, "rank 0 of the node"),
        (["something broke"], 4, "no answer any more: e: unknown host"),
    ],
)
def test_a_run_that_fails_is_the_fault_of_whom_the_words_name_or_who_is_silent(
    said: list[str], node: int, words: str, tmp_path: Path
) -> None:
    cluster = _cluster(tmp_path, {"e": "e: unknown host"})
    failed = cluster.failure(Ended(status=1, lines=tuple(said), too_long=False), range(5), 2)
    assert isinstance(failed, NodeFailed)
    assert failed.node == node
    assert words in str(failed)


def test_a_failure_that_is_nobody_s_is_the_launcher_s(tmp_path: Path) -> None:
    failed = _cluster(tmp_path, {}).failure(Ended(status=1, lines=("error: no slots",), too_long=False), range(5), 2)
    assert isinstance(failed, RunError)
    assert not isinstance(failed, NodeFailed)
    assert "all hosts answer: error: no slots" in str(failed)


def test_an_mpi_that_the_launcher_does_not_start_is_refused(tmp_path: Path) -> None:
    lines = ("probe: MPI has 1 ranks and not the 2 that were started: launcher and MPI library do not fit",)
    with pytest.raises(UserError, match="launcher and MPI library do not fit"):
        raise _cluster(tmp_path, {}).failure(Ended(status=2, lines=lines, too_long=False), range(5), 2)


# --- What is expected


class _Fixed(Runner):
    """Ranks whose times are given, by NIC: a pair takes as long as the slower of its two."""

    slow: Mapping[int, float]

    def run(
        self, steps: Sequence[Step], nodes: Sequence[int], repeats: int, on_step: Callable[[int], None]  # noqa: ARG002
    ) -> tuple[list[Measured], str]:  # fmt: skip
        slow = self.slow
        return [
            Measured(
                begin_s=0,
                end_s=1,
                times=tuple(2 * (max(slow.get(each.a, 1.0), slow.get(each.b, 1.0)),) for each in step.probes),
            )
            for step in steps
        ], "MPI"


def _natively(slow: Mapping[int, float], tmp_path: Path, **given: object) -> Natively:
    wiring = topology.wiring(["a", "b", "c", "d", "e"], 1, None)
    runner = _Fixed(cluster=_cluster(tmp_path, {}), program=tmp_path, wiring=wiring, binding=lambda _: ())
    object.__setattr__(runner, "slow", slow)
    trial = Trial(library="MPI", step_s={}, start_s=0.0)
    options = {"baseline": None, "model": {}, "out": None, "bar": Bar(quiet=True), **given}
    return Natively(runner, trial, settings(native=True), **options)  # type: ignore[arg-type]


def _steps(wiring_of: Natively, suspect: int | None = None) -> list[Step]:
    known = settings(native=True)
    steps = plan.switch_level(wiring_of._runner.wiring, range(5), known.sizes)
    if suspect is None:
        return steps
    return [
        replace(step, probes=tuple(replace(each, places=(nic_place(suspect),)) for each in step.probes
                                   if suspect in (each.a, each.b)))
        for step in steps
        if any(suspect in (each.a, each.b) for each in step.probes)
    ][:2]  # fmt: skip


def test_without_a_baseline_a_part_is_expected_to_be_as_its_peers(tmp_path: Path) -> None:
    measuring = _natively({4: 3.0}, tmp_path)
    steps = _steps(measuring)
    measured, expected = measuring.measure(steps, range(5), 0.0)
    assert expected["nic", "n4"] == 1.0
    found = judge.suspects(judge.figures(steps, measured), expected, settings(native=True).limits)
    assert {suspect.place for suspect in found} == {"n4"}


def test_what_all_take_longer_now_than_before_is_not_the_suspect_s(tmp_path: Path) -> None:
    measuring = _natively({}, tmp_path)
    measuring.measure(_steps(measuring), range(5), 0.0)
    object.__setattr__(measuring._runner, "slow", dict.fromkeys(range(5), 2.0))  # somebody else is busy there now
    again = _steps(measuring, suspect=0)
    measured, expected = measuring.again(again, range(5), 0.0, {})
    assert [len(each.times) for each in measured] == [len(step.probes) for step in again]
    assert judge.figures(again, measured)["nic", "n0"] == expected["nic", "n0"] == 2.0


def test_a_model_s_and_a_baseline_s_figures_take_the_place_of_the_peers_(tmp_path: Path) -> None:
    measuring = _natively({}, tmp_path, model={"nic": 0.5})
    expected = measuring.measure(_steps(measuring), range(5), 0.0)[1]
    assert (expected["nic", "n0"], expected["latency", "n0"]) == (0.5, 1.0)
    measuring = _natively({}, tmp_path, baseline={("nic", "n0"): 0.25})
    assert measuring.measure(_steps(measuring), range(5), 0.0)[1] == {("nic", "n0"): 0.25}


def test_what_is_measured_is_kept_and_what_is_measured_again_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    run = _Fixed.run

    def count(*args: object) -> object:
        calls.append(args)
        return run(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(_Fixed, "run", count)
    for expected in (2, 2):  # of the second time nothing is measured
        measuring = _natively({}, tmp_path, out=str(tmp_path / "out"))
        measuring.measure(_steps(measuring), range(5), 0.0)
        measuring.measure(_steps(measuring), range(5), 0.0)
        assert len(calls) == expected


# --- Limits


def test_limits_of_a_file_take_the_place_of_ours_on_simulated_machines_too(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(
        '[tolerance]\nnic = 0.5\nloopback = 0.5\nlatency = 0.5\n[limit]\nagain = { value = 2, source = "us" }\n',
        encoding="utf-8",
    )
    for native in (False, True):
        known, ours = settings(native=native, limits=str(file)), settings(native=native)
        assert (known.limits.tolerance["nic"], known.again) == (0.5, 2)
        assert known.limits.tolerance["memory"] == ours.limits.tolerance["memory"]
    words = ("validate", "--machine", "crusher", "-N", "8", "--level", "switch", "--limits", str(file), "--faults")
    scenario = tmp_path / "faults.toml"
    for rate, status in (("0.8", 0), ("0.5", 1)):
        scenario.write_text(f'[[nic]]\nnic = "n13"\nrate = {rate}\n', encoding="utf-8")
        assert CliRunner().invoke(cli, [*words, str(scenario)]).exit_code == status
    file.write_text("", encoding="utf-8")
    scenario.write_text('[[nic]]\nnic = "n13"\nrate = 0.8\n', encoding="utf-8")
    assert CliRunner().invoke(cli, [*words, str(scenario)]).exit_code == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tolerance]\nnik = 1", "tolerance.nik: accepted is memory, cpu"),
        ("[size]\nnic_bytes = 1", "size: accepted are tables [tolerance] and [limit]"),
        ("[tolerance]\nnic = -1", "tolerance.nic = -1: accepted is a number above 0"),
        ("[limit]\nagain = 1.5", "limit.again = 1.5: accepted is a whole number above 0"),
        ("[limit", "limits.toml:"),
    ],
)
def test_limits_that_cannot_be_used_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        settings(limits=str(file))
    assert sentence in str(error.value)


# --- The node's own tools


def _check(tmp_path: Path, limits: str = "") -> HostCheck:
    file = tmp_path / "limits.toml"
    file.write_text(f"[limit]\n{limits}\n", encoding="ascii")
    asked = Asked(native=Native(), limits=str(file))
    return HostCheck(asked, socket.gethostname(), cxi=str(tmp_path / "cxi"), edac=tmp_path / "edac")


def test_before_a_job_the_tools_that_are_installed_are_asked(
    bin_folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    bin_folder("cxi_healthcheck", "echo one; echo 'cxi0: link flaps'; exit 3")
    bin_folder("cxi_gpu_loopback_bw", "true")
    _sysfs(tmp_path / "cxi", 0, **{**_GOOD_NIC, "current_link_width": "8"})
    assert [(each.name, each.passed, each.said) for each in _check(tmp_path).run("prolog")] == [
        ("cxi_healthcheck", False, ("one", "cxi0: link flaps")),
        ("slingshot-diag", None, ("not installed",)),
        ("cxi_gpu_loopback", True, ()),
        ("NICs", False, ("cxi0 LnkSta: Speed 16.0 GT/s PCIe, Width x8, and it can have 16.0 GT/s PCIe, x16",)),
    ]


@pytest.mark.parametrize(
    ("when", "names", "of_second"),
    [
        ("prolog", ("cxi_healthcheck", "slingshot-diag"), "has not begun, for 1 s were over"),
        ("epilog", ("cxi_service",), "cxi0: has not ended in 1 s"),
    ],
)
def test_what_takes_too_long_before_or_after_a_job_is_killed_and_fails(
    when: str, names: tuple[str, ...], of_second: str, bin_folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    children = tmp_path / "children"
    for name in names:  # the child has no output of its parent's, and a session of its own
        bin_folder(name, f"setsid sleep 25 >&- 2>&- & echo $! >> {children}; sleep 25")
    setsid = shutil.which("setsid", path="/usr/bin:/bin")
    assert setsid is not None
    (tmp_path / "bin/setsid").symlink_to(setsid)
    began = time.monotonic()
    checks = {check.name: check for check in _check(tmp_path, f"{when}_s = 1").run(when)}
    assert time.monotonic() - began < 5
    late = checks["cxi_healthcheck" if when == "prolog" else "services"]
    assert (late.passed, late.said[0]) == (False, "has not ended in 1 s" if when == "prolog" else of_second)
    if when == "prolog":
        assert (checks["slingshot-diag"].passed, checks["slingshot-diag"].said) == (False, (of_second,))
    (child,) = children.read_text(encoding="ascii").split()
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"


def test_a_prolog_has_under_ten_seconds() -> None:
    ours = settings(native=True).native
    assert max(ours.prolog_s, ours.epilog_s) < 10


@pytest.mark.usefixtures("bin_folder")
def test_a_node_with_nothing_to_check_by_has_not_passed(tmp_path: Path) -> None:
    check = _check(tmp_path)
    assert check.content("prolog", check.run("prolog"))["result"] == "not checked"
    if Path(facts.CXI).exists():
        return
    report = tmp_path / "v.json"
    ended = CliRunner().invoke(cli, ["validate", "--native", "--prolog", "--json", str(report)])
    assert (ended.exit_code, ended.output.splitlines()[-1]) == (0, "nothing was checked")
    assert json.loads(report.read_text(encoding="utf-8"))["result"] == "not checked"


_LIST = """cat <<'E'
$3
----
 --------------------------
 ID: 1 (DEFAULT)
   System Service     : No
 --------------------------
 ID: 2
   Enabled            : Yes
   System Service     : Yes
 --------------------------
 ID: 5
   Enabled            : Yes
   System Service     : No
E"""


def test_after_a_job_services_that_it_left_are_deleted(bin_folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    log = tmp_path / "log"
    bin_folder("cxi_service", f"echo $* >> {log}\n[ $1 = list ] || exit 0\n{_LIST}")
    _sysfs(tmp_path / "cxi", 1, **_GOOD_NIC)
    (tmp_path / "edac/mc0").mkdir(parents=True)
    (tmp_path / "edac/mc0/ue_count").write_text("2\n", encoding="ascii")
    flaps, errors, services = _check(tmp_path).run("epilog")
    assert flaps.passed
    assert (errors.passed, errors.said) == (False, ("mc0: 2 uncorrected memory errors, accepted are fewer than 1",))
    assert (services.passed, services.said) == (True, ("cxi1: service 5 was left, deleted",))
    assert log.read_text(encoding="ascii") == "list -d cxi1\ndelete -d cxi1 -s 5\n"
    assert _check(tmp_path, "memory_errors = 3").run("epilog")[1].passed


def test_links_that_have_flapped_too_often_fail_after_a_job(tmp_path: Path) -> None:
    times = {f"link_restarts__time_{n}": str(int(time.time()) - 100 * n) for n in range(1, 6)}
    _sysfs(tmp_path / "cxi", 0, **_GOOD_NIC, **times)
    assert _check(tmp_path).run("epilog")[0].said == ("cxi0: 5 in 1 h, accepted are fewer than 5",)


def test_only_this_node_is_checked_natively() -> None:
    with pytest.raises(UserError, match="--node elsewhere: this is"):
        HostCheck(Asked(native=Native()), "elsewhere")


def test_a_baseline_of_another_machine_is_refused_before_any_host_is_asked(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    content = of_simulated(Asked(machine="crusher", nodes=4, level="node")).run().content()
    for changes, sentence in (
        ({}, "it is of crusher, and this is native"),
        ({"machine": "native"}, "it has network links, and this native"),
        ({"machine": "native", "network": "native"}, "it is of 4 nodes that are not these 2"),
    ):
        good.write_text(json.dumps({**content, **changes}), encoding="utf-8")
        words = ["validate", "--native", "--hosts", "a,b", "--mpi", "mpich", "--level", "node", "--baseline", str(good)]
        ended = CliRunner().invoke(cli, words)
        assert isinstance(ended.exception, UserError)
        assert sentence in str(ended.exception)


# --- The command


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--native", "--faults", "f.toml"), "--faults is of simulated machines"),
        (("--native", "--noise", "machine"), "--noise is of simulated machines"),
        (("--hosts", "a,b"), "--hosts is of real clusters: leave it out, or say --native"),
        (("--nics", "2"), "--nics is of real clusters"),
        (("--native", "--hosts", "a,a"), "a is there twice"),
        (("--native", "--prolog", "--hosts", "a,b"), "--hosts a,b has no effect on --prolog and --epilog"),
        (("--native", "--hosts", "a"), "there is 1 host, a, and no file of that name; accepted is 2 or more"),
        (("--native", "--hosts", "a,b", "-N", "3"), "-N 3: accepted is 2 to 2"),
        (("--native", "--hosts", "a,b", "--launcher", "aprun"), "--launcher aprun: accepted is"),
        (("--native", "--hosts", "a,b", "--mpi", "nonesuch"), 'unknown MPI library "nonesuch"'),
        (("--native", "--hosts", "a,b", "--machine", "nonesuch"), "nonesuch"),
        (("--native", "--hosts", "a,b", "--limits", "nowhere"), "--limits nowhere: No such file"),
    ],
)
def test_what_cannot_be_used_is_refused(words: tuple[str, ...], sentence: str) -> None:
    ended = CliRunner().invoke(cli, ["validate", *words])
    assert isinstance(ended.exception, UserError)
    assert sentence in str(ended.exception)


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    written_over = f"nic{21 * ' '} [{15 * '#'}{15 * '.'}]  50%, about 50 s left"
    for stream, expected in ((Terminal(), written_over), (io.StringIO(), "dryfly: nic: 50%, about 50 s left\n")):
        now = [0.0]
        bar = Bar(quiet=False, stream=stream, clock=lambda now=now: now[0])  # type: ignore[misc]
        bar.expect(100)
        bar.reached("nic", 10)
        now[0] = 11.0
        bar.reached("nic", 50)
        assert stream.getvalue().removeprefix("\r\033[K") == expected
    assert [duration(seconds) for seconds in (0.2, 40, 700, 12600)] == ["1 s", "40 s", "12 min", "3.5 h"]


def test_whoever_is_in_the_middle_of_an_exec_is_ended_too(tmp_path: Path) -> None:
    """It has no environment then by which it could be found; one in ten was left."""
    again = tmp_path / "again.sh"
    again.write_text(f"exec /bin/sh {again}\n", encoding="ascii")
    for number in range(40):
        mark = f"{job._MARK}={number}"
        process = subprocess.Popen(["/bin/sh", again], env=dict([mark.split("=")]))
        time.sleep(0.005)
        try:
            job._kill_rest(mark.encode(), 5.0)
            assert process.wait(timeout=1.0) == -signal.SIGKILL
        finally:
            process.kill()
            process.wait()
