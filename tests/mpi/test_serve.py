"""`dryfly serve` and `dryfly env`: programs that use libfabric, without MPI, on a fabric that they join and leave."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dryfly.mpi import libraries as mpi
from dryfly.run import fabrics

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "programs" / "fabric" / "peer.c"
LIMIT_S = 60.0


def dryfly(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dryfly", *words], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


class Served:
    """A fabric of its own name, so that tests do not meet."""

    def __init__(self, name: str, *words: str) -> None:
        self.name = f"test-{os.getpid()}-{name}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dryfly", "serve", "--name", self.name, "--quiet", *words],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        assert "is up" in first, first

    @property
    def conductor(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8")
        return int(children.split()[0])

    def environment(self, node: int | str) -> dict[str, str]:
        return {**os.environ, **fabrics.environment(fabrics.find(self.name), str(node))}

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        status = self.process.wait(timeout=LIMIT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status


class Pair:
    """Two peers, server first. Ended at the latest with the test."""

    def __init__(self, program: Path, served: Served, nodes: tuple[int, int], *words: str, **settings: str) -> None:
        ends = socket.socketpair()
        self.processes = []
        for end, role, node in zip(ends, ("server", "client"), nodes, strict=True):
            self.processes.append(
                subprocess.Popen(
                    [program, str(end.fileno()), role, *words],
                    env={**served.environment(node), **settings},
                    pass_fds=[end.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        for end in ends:
            end.close()

    def __enter__(self) -> Pair:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()

    def succeed(self) -> str:
        """What the client has printed."""
        outputs = [process.communicate(timeout=LIMIT_S) for process in self.processes]
        for process, (_, errors) in zip(self.processes, outputs, strict=True):
            assert process.returncode == 0, errors
        return str(outputs[1][0])

    def wait_for_line(self) -> None:
        for process in self.processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "under way\n"


@pytest.fixture(scope="module")
def library() -> mpi.MpiLibrary:
    return mpi.select(None)


@pytest.fixture(scope="module")
def peer(library: mpi.MpiLibrary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not Path("/usr/include/rdma/fabric.h").is_file():
        pytest.skip("libfabric's headers are not installed")
    program = tmp_path_factory.mktemp("peer") / "peer"
    libfabric = Path(library.libfabric)
    subprocess.run(
        ["cc", "-O1", "-Wall", "-Werror", "-o", program, SOURCE, libfabric, f"-Wl,-rpath,{libfabric.parent}"],
        check=True,
    )
    return program


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    fabric = Served("module")
    yield fabric
    assert fabric.end() == 0


@pytest.mark.parametrize(
    ("table", "waits"), [("TABLE", "none"), ("MAP", "unspec"), ("TABLE", "fd"), ("TABLE", "pollfd")]
)
def test_every_kind_of_call_works_between_two_programs(peer: Path, served: Served, table: str, waits: str) -> None:
    with Pair(peer, served, (1, 3), "calls", table, waits) as pair:
        pair.succeed()


def test_a_latency_is_that_of_the_machine_however_busy_the_host_and_longer_to_a_node_farther_away(
    peer: Path, served: Served
) -> None:
    near, far = (0, 1), (0, 31)  # of one switch; of two groups
    measured = []
    for nodes in (near, far, near):
        with Pair(peer, served, nodes, "latency", "TABLE", "none") as pair:
            measured.append(int(pair.succeed()))
    # The NICs' latencies are drawn, and what was drawn before depends on who was here before.
    assert abs(measured[0] - measured[2]) < measured[0] / 20
    assert 1000 < measured[0] < measured[1] < 10000  # nanoseconds


def test_a_program_that_sleeps_elsewhere_holds_nobody_up(peer: Path, served: Served) -> None:
    with Pair(peer, served, (4, 5), "endless", "TABLE", "none") as stopped:
        stopped.wait_for_line()
        for process in stopped.processes:
            process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with Pair(peer, served, (1, 2), "calls", "TABLE", "none") as pair:
            pair.succeed()
        assert time.monotonic() - began < LIMIT_S / 2


def test_the_place_of_a_killed_program_is_taken_and_what_was_for_it_reaches_nobody(peer: Path, served: Served) -> None:
    for _ in range(3):
        with Pair(peer, served, (6, 7), "endless", "TABLE", "unspec") as pair:
            pair.wait_for_line()
            pair.processes[0].kill()
            with Pair(peer, served, (6, 7), "calls", "MAP", "none") as next_pair:
                next_pair.succeed()


def test_whoever_comes_second_to_a_place_takes_events_off_a_small_queue_too(peer: Path, served: Served) -> None:
    # 2 x 16 receives, 4, and a batch of 32 are 68 slots, for 200 messages.
    small = {"FI_CXI_DEFAULT_RX_SIZE": "16", "FI_CXI_DEFAULT_CQ_SIZE": "64"}
    for _ in range(2):
        with Pair(peer, served, (8, 9), "latency", "TABLE", "none", **small) as pair:
            pair.succeed()


@pytest.mark.usefixtures("served")
def test_two_fabrics_do_not_meet(peer: Path) -> None:
    other = Served("other", "--processes", "2")
    try:
        with Pair(peer, other, (0, 1), "calls", "TABLE", "none") as pair:
            pair.succeed()
        several = dryfly("env", "--node", "0")
        assert several.returncode == 2
        assert "--name chooses among" in several.stderr
        assert other.name in several.stderr
    finally:
        assert other.end(signal.SIGTERM) == 0
    assert other.name not in fabrics.served()


@pytest.mark.skipif(shutil.which("fi_info") is None, reason="libfabric's programs are not installed")
def test_libfabrics_own_programs_find_the_nic(served: Served) -> None:
    env = shlex.join([sys.executable, "-m", "dryfly", "env", "--name", served.name, "--node", "t3"])
    shown = subprocess.run(
        ["sh", "-c", f'eval "$({env})" && echo $DRYFLY_NODE && fi_info -p cxi'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.startswith("3\n")
    assert "domain: cxi0" in shown.stdout


def test_a_program_ends_with_its_fabric_and_nothing_is_left(peer: Path) -> None:
    fabric = Served("ends")
    conductor = fabric.conductor
    with Pair(peer, fabric, (0, 1), "endless", "TABLE", "none") as pair:
        pair.wait_for_line()
        fabric.process.kill()
        fabric.process.communicate()
        for process in pair.processes:
            _, errors = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 70
            assert "no longer served" in errors
    deadline = time.monotonic() + 10
    while Path(f"/proc/{conductor}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{conductor}").exists()
    assert fabric.name not in fabrics.served()


def test_wrong_input_is_one_sentence(served: Served) -> None:
    for words, sentence in (
        (("env", "--node", "0", "--name", "nobody"), 'no fabric named "nobody" is served; there is '),
        (("env", "--node", "32", "--name", served.name), "accepted is 0 to 31, or a name, t0 to t31"),
        (("env", "--node", "nid1", "--name", served.name), '--node "nid1": the fabric '),
        (("env", "--node", "0", "--name", "a b"), '--name "a b": accepted is'),
        (("serve", "--name", served.name), "is served already; --name gives this one another name"),
        (("serve", "--name", ""), '--name "": accepted is'),
        (("serve", "--processes", "0"), "--processes 0: accepted is 1 to 16384"),
        (("serve", "--machine", "nothing"), "nothing"),
    ):
        answer = dryfly(*words)
        assert answer.returncode == 2, words
        assert sentence in answer.stderr
        assert answer.stderr.count("\n") == 1
        assert not answer.stdout


def test_a_fabric_that_is_full_says_so(peer: Path) -> None:
    fabric = Served("full", "--processes", "1")
    try:
        with Pair(peer, fabric, (0, 0), "endless", "TABLE", "none") as pair:
            errors = [
                process.communicate(timeout=LIMIT_S)[1] for process in pair.processes
            ]  # the other misses its peer
            assert sum("room for 1 processes" in text for text in errors) == 1
    finally:
        assert fabric.end() == 0


def test_more_processes_than_the_user_may_have_descriptors_for_are_refused() -> None:
    command = f"ulimit -n 100; exec {shlex.quote(sys.executable)} -m dryfly serve --name test-{os.getpid()}-few"
    refused = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert refused.returncode == 2
    assert "--processes 512: " in refused.stderr
    assert "accepted is up to 34" in refused.stderr  # (100 - 32) / 2
