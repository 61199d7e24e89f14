"""Runs `dryfly run` as a user does, in a process of its own, and looks at what it leaves behind.

Every run carries a variable of its own in its environment, which all its processes inherit: whoever still has it after
the end was left behind. A run over its time limit is ended, with all of these processes, and fails the test.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dryfly.base.folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "programs" / "check"
MICRO = ROOT / "programs" / "micro"

_MARKER = "DRYFLY_TEST_RUN"
_SHARED_MEMORY = Path("/dev/shm")


def script(file: Path, text: str) -> Path:
    """Written, and executable."""
    file.write_text(text)
    file.chmod(0o755)
    return file


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run that has ended."""

    exit_status: int
    stdout: str
    stderr: str
    wall_time_s: float
    results: dict[str, Any] = field(default_factory=dict)  # of --json; empty when it was not written

    @property
    def fingerprint(self) -> str:
        return str(self.results["fingerprint"])

    def succeeded(self) -> Ended:
        assert self.exit_status == 0, f"exit status {self.exit_status}\n{self.stdout}\n{self.stderr}"
        return self


@dataclass(frozen=True)
class Process:
    pid: int
    name: str  # of the executable file; empty when it is gone


class Started:
    """A run under way. `command` follows `python -m dryfly`."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], cwd: Path | None) -> None:
        self._marker = f"{_MARKER}={os.getpid()}-{time.monotonic_ns()}"
        self._started_at = time.monotonic()
        self._folder = tempfile.TemporaryDirectory(prefix="result-of-")
        self._json = Path(self._folder.name) / "run.json"
        # What the run leaves in /dev/shm is told from other programs' files by a folder that is /dev/shm for it alone.
        self._shared_memory = RunFolder(_SHARED_MEMORY, "dryfly-test-")
        self._shared_memory.path.chmod(0o1777)
        command = list(command)
        if command and command[0] == "run" and "--json" not in command:
            command[1:1] = ["--json", str(self._json)]
        name, _, value = self._marker.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dryfly", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **environment, name: value},
            cwd=cwd,
            start_new_session=True,
            preexec_fn=self._before_start,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._stdout: list[str] = []
        self._stderr: list[str] = []
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._streams = [self.process.stdout, self.process.stderr]
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, self._stdout, True), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self._stderr, False), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _before_start(self) -> None:
        # A shell's background job ignores SIGINT, and so would all below it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _mount_for_this_process(str(self._shared_memory.path), str(_SHARED_MEMORY))

    def _read(self, stream: IO[str], lines: list[str], announced: bool) -> None:
        for line in stream:
            lines.append(line)
            if announced:
                self._lines.put(line)
        if announced:
            self._lines.put(None)

    def wait_for_line(self, text: str, *, limit_s: float = 30.0) -> None:
        """Until a line of standard output holds `text`."""
        deadline = time.monotonic() + limit_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.kill()
                raise AssertionError(f'"{text}" was not printed\n{"".join(self._stdout)}\n{"".join(self._stderr)}')
            if text in line:
                return

    def wait(self, *, limit_s: float) -> Ended:
        try:
            status = self.process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = "".join(self._stdout)[-4000:], "".join(self._stderr)[-4000:]
            raise AssertionError(f"the run did not end within {limit_s} s\n{out}\n{err}") from None
        wall_time_s = time.monotonic() - self._started_at
        for reader in self._readers:
            reader.join(timeout=10)
        results = {}
        if self._json.is_file() and self._json.stat().st_size > 0:
            results = json.loads(self._json.read_text(encoding="utf-8"))
        return Ended(
            exit_status=status,
            stdout="".join(self._stdout),
            stderr="".join(self._stderr),
            wall_time_s=wall_time_s,
            results=results,
        )

    def processes(self) -> list[Process]:
        """All processes of this run that are alive: of dryfly, the simulator, the launcher and the job."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            try:
                if self._marker.encode() not in (folder / "environ").read_bytes().split(b"\0"):
                    continue
                if " Z " in (folder / "stat").read_text().rpartition(")")[2][:3]:
                    continue
                found.append(Process(int(folder.name), (folder / "exe").readlink().name))
            except OSError:
                continue  # it has ended meanwhile, or belongs to somebody else
        return found

    def pid_of(self, name: str) -> int:
        """One process whose executable has this name; the last one started."""
        pids = [process.pid for process in self.processes() if process.name == name]
        assert pids, f"no process {name} among {self.processes()}"
        return max(pids)

    def pause_ranks(self, name: str, *, times: int) -> None:
        """Stops a rank for 10 ms `times` times, as a busy host may; `name` is the ranks' executable."""
        draw = random.Random(1)
        for _ in range(times):
            pids = [process.pid for process in self.processes() if process.name == name]
            if not pids and self.process.poll() is not None:
                return
            for pid in draw.sample(pids, min(len(pids), 2)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            time.sleep(0.01)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def kill(self) -> None:
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Ends what is still running."""
        self.kill()
        for reader, stream in zip(self._readers, self._streams, strict=True):
            reader.join(timeout=10)
            stream.close()
        self._folder.cleanup()
        self._shared_memory.remove()

    def require_nothing_left(self, *, within_s: float = 5.0) -> None:
        """No process of the run, and none of its shared memory, `within_s` from now."""
        deadline = time.monotonic() + within_s
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        left = self.processes()
        if left:
            self.kill()
        said = "".join(self._stderr)[-2000:]
        assert not left, f"these processes were left behind: {left}\n{said}"
        orphans = sorted(entry.name for entry in self._shared_memory.path.iterdir())
        assert not orphans, f"left in {_SHARED_MEMORY}: {orphans}\n{said}"


_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000


def _mount_for_this_process(folder: str, at: str) -> None:
    """Where the user may not, the run shares /dev/shm with others, and what it leaves there is not looked at."""
    if _LIBC.unshare(_NEW_MOUNTS) == 0:
        _LIBC.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
        _LIBC.mount(folder.encode(), at.encode(), None, _BIND, None)


def kill_when_kept(command: Sequence[str], current: Path, *, step: int) -> None:
    """Starts a solver with checkpoints and kills it once the state of such a step is complete."""
    with RunFolder(_SHARED_MEMORY, "dryfly-test-") as shared_memory:  # MPICH leaves its own behind where it is killed
        folder = str(shared_memory.path)
        run = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: _mount_for_this_process(folder, str(_SHARED_MEMORY)),
        )
        _kill_when_kept(run, current, step)


def _kill_when_kept(run: subprocess.Popen[bytes], current: Path, step: int) -> None:
    deadline = time.monotonic() + 60
    while not current.exists() or int(current.read_text().split()[0]) < step:
        assert run.poll() is None, "it has ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
