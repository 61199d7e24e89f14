"""One run of a launcher: its lines as they come, within limits of time, and nothing of it left here afterwards.

Hydra leaves its proxies, and the ssh that started them, where one of them could not be started. Whatever a run has
started has a variable in its environment by which it is found.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.base import signals
from dryfly.base.errors import RunError

_END_WITHIN_S = 5.0
_KILL_WITHIN_S = 0.3  # one that hangs in a driver does not die
_LOOKS = 5
_TOO_LONG = 124  # as of timeout(1)
_MARK = "DRYFLY_NATIVE_RUN"
# Where hydra runs, and the line of its source.
_BY_HYDRA = re.compile(r"^\[(?:mpiexec|proxy:[\d:]+)@[^\]]*\] (?:\w+ \([^)]*\): )?")


def _without_place(line: str) -> str:
    return _BY_HYDRA.sub("", line)


def names(line: str, host: str) -> bool:
    """Whether the host's name is a word of the line."""
    return bool(host) and re.search(rf"(?<![\w.]){re.escape(host)}\b", line, re.IGNORECASE) is not None


@dataclass(frozen=True, kw_only=True)
class Ended:
    status: int
    lines: tuple[str, ...]  # of both outputs
    too_long: bool  # it was ended because it said nothing any more

    def words(self, about: str = "") -> str:
        """The line that tells most: one that names `about`, or of an error, or the last. Hydra's own say where in it
        that became known, so they count only if there are no others."""
        lines = [_without_place(line).strip(" =-") for line in self._by_others(about) or self._said()]
        for line in lines:
            if names(line, about):
                return line
        for wanted in ("unrecognized", "error", "unable", "cannot", "not "):
            for line in lines:
                if wanted in line.lower():
                    return line
        if self.too_long:
            return "nothing was said any more"
        return lines[-1] if lines else f"exit status {self.status}, without a word"

    def cause_is_lost(self, about: str = "") -> bool:
        """Hydra alone has said something. Where what it starts has ended before hydra looks for what that said, hydra
        ends without having read it."""
        return bool(self._said()) and not self._by_others(about)

    def _said(self) -> list[str]:
        return [line for line in self.lines if "dryfly-host" not in line and line.strip(" =-")]

    def _by_others(self, about: str) -> list[str]:
        return [line for line in self._said() if not _BY_HYDRA.match(line) or names(_without_place(line), about)]


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    first_s: float,
    silence_s: float,
    on_line: Callable[[str], None] = lambda _: None,
) -> Ended:
    """Ends it when its first line takes longer than `first_s`, or another one longer than `silence_s`. Raises RunError
    where the command cannot be started."""
    process, mark = _started(command, environment)
    said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process, said), daemon=True)
    reader.start()
    lines: list[str] = []
    too_long = False
    try:
        while True:
            try:
                line = said.get(timeout=silence_s if lines else first_s)
            except queue.Empty:
                too_long = True
                break
            if line is None:
                break
            lines.append(line)
            on_line(line)
        if not too_long:
            process.wait()
    finally:
        _end(process)
        _kill_rest(mark, _END_WITHIN_S)
        reader.join(timeout=_END_WITHIN_S)  # whoever still has the pipe is none of the launcher's group
        if not reader.is_alive() and process.stdout is not None:
            process.stdout.close()
    return Ended(status=process.returncode, lines=tuple(lines), too_long=too_long)


def answer(command: Sequence[str], *, environment: Mapping[str, str], within_s: float) -> Ended:
    """Of a command that has not ended by then nothing is waited for: it is killed, with whatever it has started. Raises
    RunError where it cannot be started."""
    process, mark = _started(command, environment)
    ended = False
    try:
        said, _ = process.communicate(timeout=within_s)
        ended = True
        return Ended(status=process.returncode, lines=tuple(said.splitlines()), too_long=False)
    except subprocess.TimeoutExpired:
        return Ended(status=_TOO_LONG, lines=(), too_long=True)
    finally:
        if not ended:
            process.kill()
            _kill_rest(mark, _KILL_WITHIN_S)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_KILL_WITHIN_S)
            if process.stdout is not None:
                process.stdout.close()


def _started(command: Sequence[str], environment: Mapping[str, str]) -> tuple[subprocess.Popen[str], bytes]:
    """And what is in the environment of whatever it starts."""
    mark = secrets.token_hex(16)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, _MARK: mark},
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=signals.dying_with_parent(),
        )
    except OSError as error:
        raise RunError(f"{command[0]} cannot be run: {error.strerror}", exit_status=1) from None
    return process, f"{_MARK}={mark}".encode()


def _read(process: subprocess.Popen[str], said: queue.SimpleQueue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        said.put(line.rstrip("\n"))
    said.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """A launcher that is asked to end ends its ranks."""
    if process.poll() is None:
        process.terminate()
        deadline = time.monotonic() + _END_WITHIN_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    process.wait()


def _kill_rest(mark: bytes, within_s: float) -> None:
    """One of them may start another meanwhile, so until there is none. One in the middle of an exec shows no
    environment, so there is none when several looks in a row have found none."""
    deadline = time.monotonic() + within_s
    none = 0
    while none < _LOOKS and time.monotonic() < deadline:
        left = _marked(mark)
        none = 0 if left else none + 1
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _marked(mark: bytes) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # it is gone, or another user's
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
