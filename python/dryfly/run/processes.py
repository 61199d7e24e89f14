"""Starts dryfly-conductor and dryfly-launch, watches both, and says how the job ended.

    dryfly (this process) --- lifetime pipe ---> dryfly-conductor   ends when the pipe closes
           |                                          | attach pipe: `attached R PID`
           +--- parent-death signal ----------> dryfly-launch ---> ranks   die with their launcher

So whichever process is killed, the others follow. Status lines come back over one pipe from each.
"""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dryfly.base import signals
from dryfly.base.errors import RunError
from dryfly.base.paths import CONDUCTOR, LAUNCHER, native
from dryfly.base.preloads import environment_without
from dryfly.base.units import time_text
from dryfly.result.finding import TRIGGERED_LIMIT, Finding
from dryfly.run import sentences, stragglers
from dryfly.run.progress import Progress

EXIT_DEADLOCK = 3
EXIT_SIMULATOR = 70
EXIT_TIMEOUT = 124

_READY_WITHIN_S = 60.0  # a full machine is built before the conductor is ready
_END_WITHIN_S = 5.0  # from asking a process to end until it is killed
_DEADLOCK_LINES_WITHIN_S = 0.5
_WARNINGS_SAID = 4  # of each name
_GONE_WITHIN_S = 10.0  # from the last rank's MPI_Finalize until those that still run are named


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    channel: str
    spec: str
    plan: str
    program: tuple[str, ...]
    node_names: tuple[str, ...]  # by rank
    result_file: Path
    record_folder: Path | None = None
    timeout_s: float | None = None
    debug_rank: int | None = None
    debug_command: tuple[str, ...] = ()
    launcher: str = "dryfly"
    launcher_options: str = ""  # the user's, to that launcher
    progress: Progress | None = None
    output_to_stderr: bool = False  # what the program prints: standard output is wanted for something else


@dataclass(kw_only=True)
class Outcome:
    exit_status: int = 0
    failure: str = ""  # one sentence; empty: the job ended well
    details: list[str] = field(default_factory=list)  # lines that belong to the failure
    findings: list[Finding] = field(default_factory=list)
    attached: int = 0  # processes that joined the simulation
    has_result: bool = False  # every rank came to MPI_Finalize, and the conductor wrote what it counted
    wall_time_s: float = 0.0


def new_channel() -> str:
    """The conductor's abstract socket: nobody can guess it, and it leaves nothing behind."""
    return "dryfly-" + secrets.token_hex(16)


def run(spec: JobSpec, *, say: Callable[[str], None]) -> Outcome:
    return _Job(spec, say).run()


def memory_file(name: str, text: str) -> int:
    descriptor = os.memfd_create(name)
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as file:
        file.write(text)
    return descriptor


class _Lines:
    """Hands on each whole line that comes through a pipe."""

    def __init__(self, descriptor: int, handle: Callable[[str], None]) -> None:
        self.descriptor = descriptor
        self.ended = False  # the writer is gone
        self._handle = handle
        self._rest = b""

    def read(self) -> bool:
        """False when nothing is there."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return False
        self.ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._handle(line.decode(errors="replace"))
        return True


class _Child:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pidfd = os.pidfd_open(process.pid)
        self.kill_at: float | None = None

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        if self.alive and self.kill_at is None:
            self.process.terminate()
            self.kill_at = time.monotonic() + _END_WITHIN_S

    def kill_if_due(self) -> None:
        if self.kill_at is not None and time.monotonic() >= self.kill_at and self.alive:
            self.process.kill()

    def how_it_ended(self) -> str:
        return how_it_ended(self.process.returncode)


class _Job:
    def __init__(self, spec: JobSpec, say: Callable[[str], None]) -> None:
        self._spec = spec
        self._reached_ps = 0  # of virtual time
        self._say = say
        self._outcome = Outcome()
        self._selector = selectors.DefaultSelector()
        self._descriptors: list[int] = []
        self._children: list[_Child] = []
        self._launcher: _Child | None = None
        self._sources: list[_Lines] = []
        self._deadlock_at: float | None = None
        self._without_entry: list[tuple[int, int]] = []  # operations, and entries that there are, of each rank
        self._gone_by: float | None = None
        self._signal = 0
        self._ready = False

    def run(self) -> Outcome:
        started = time.monotonic()
        restore = signals.watch(self._selector, self._on_signal)
        try:
            self._start()
            while any(child.alive for child in self._children):
                self._step()
            self._drain()
            self._conclude()
        finally:
            self._close()
            restore()
            self._clear_progress()
        self._outcome.wall_time_s = time.monotonic() - started
        return self._outcome

    # Starting.

    def _start(self) -> None:
        attach_read, attach_write = self._pipe()
        lifetime_read, _ = self._pipe()  # this process holds the other end
        conductor_read, conductor_write = self._pipe()
        launcher_read, launcher_write = self._pipe()
        spec_file = self._keep(memory_file("dryfly-spec", self._spec.spec))
        plan_file = self._keep(memory_file("dryfly-plan", self._spec.plan))
        command = [str(native(CONDUCTOR)), "--spec", f"/proc/self/fd/{spec_file}", "--channel", self._spec.channel]
        command += ["--result", str(self._spec.result_file), "--status-fd", str(conductor_write)]
        command += ["--attach-fd", str(attach_write), "--lifetime-fd", str(lifetime_read)]
        if self._spec.record_folder is not None:
            command += ["--record", str(self._spec.record_folder)]
        self._conductor = self._spawn(
            command,
            pass_fds=(spec_file, conductor_write, attach_write, lifetime_read),
            background=True,
        )
        self._close_now(conductor_write, attach_write, lifetime_read)
        self._watch_lines(conductor_read, self._from_conductor)
        self._wait_until_ready()
        if self._signal or self._outcome.failure:
            self._conductor.end()
            return
        command = [str(native(LAUNCHER)), "--plan", f"/proc/self/fd/{plan_file}"]
        command += ["--status-fd", str(launcher_write), "--attach-fd", str(attach_read)]
        if self._spec.timeout_s is not None:
            command += ["--timeout", f"{self._spec.timeout_s:g}"]
        if self._spec.debug_rank is not None:
            command += ["--debug-rank", str(self._spec.debug_rank), "--debug-command", *self._spec.debug_command]
        command += ["--", *self._spec.program]
        self._launcher = self._spawn(command, pass_fds=(plan_file, launcher_write, attach_read), background=False)
        self._close_now(launcher_write, attach_read)
        self._watch_lines(launcher_read, self._from_launcher)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while not self._signal:
            for key, _ in self._selector.select(0.2):
                key.data()
            if self._ready or self._outcome.failure:
                return
            if not self._conductor.alive:
                self._drain()
                refused = self._conductor.process.returncode == 2  # it has said why on stderr
                ending = "refused the machine" if refused else f"{self._conductor.how_it_ended()} before it was ready"
                self._fail(f"the simulator (dryfly-conductor) {ending}", 2 if refused else EXIT_SIMULATOR)
                return
            if time.monotonic() > deadline:
                self._fail(f"the simulator was not ready within {_READY_WITHIN_S:g} s", EXIT_SIMULATOR)
                return

    def _spawn(self, command: list[str], *, pass_fds: Sequence[int], background: bool) -> _Child:
        """In the background: off the terminal, so that Ctrl-C reaches dryfly and not the simulator."""
        try:
            process = subprocess.Popen(
                command,
                pass_fds=pass_fds,
                env=environment_without(),  # a rank's LD_PRELOAD is in the plan
                stdin=subprocess.DEVNULL if background else None,
                stdout=sys.stderr.fileno() if self._spec.output_to_stderr else None,
                start_new_session=background,
                preexec_fn=signals.dying_with_parent(),
            )
        except OSError as error:
            raise RunError(f"{command[0]} cannot be started: {error.strerror}", exit_status=EXIT_SIMULATOR) from None
        child = _Child(process)
        self._keep(child.pidfd)
        self._children.append(child)
        self._selector.register(child.pidfd, selectors.EVENT_READ, lambda: self._child_ended(child))
        return child

    # Watching.

    def _step(self) -> None:
        for key, _ in self._selector.select(0.2 if self._deadlines_pending() else 2.0):
            key.data()
        now = time.monotonic()
        if self._deadlock_at is not None and now >= self._deadlock_at:
            self._end_launcher()
        if self._gone_by is not None and now >= self._gone_by:
            self._gone_by = None
            self._name_stragglers()
        for child in self._children:
            child.kill_if_due()

    def _deadlines_pending(self) -> bool:
        return (
            self._deadlock_at is not None
            or self._gone_by is not None
            or any(child.kill_at is not None for child in self._children)
        )

    def _child_ended(self, child: _Child) -> None:
        self._selector.unregister(child.pidfd)
        child.process.wait()
        self._drain()
        if child is not self._conductor:
            self._conductor.end()
        elif self._launcher is not None and self._launcher.alive:
            self._fail(f"the simulator (dryfly-conductor) {child.how_it_ended()}; the job was ended", EXIT_SIMULATOR)
            self._end_launcher()

    def _end_launcher(self) -> None:
        if self._launcher is not None:
            self._launcher.end()

    def _from_conductor(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "ready":
            self._ready = True
        elif word == "attached":
            self._outcome.attached += 1
        elif word == "started" and self._spec.progress is not None:
            self._spec.progress.start()
        elif word == "reached":
            self._reached_ps = int(rest)
            if self._spec.progress is not None:
                self._spec.progress.reached(self._reached_ps)
        elif word == "ended":
            self._outcome.has_result = True
            self._gone_by = time.monotonic() + _GONE_WITHIN_S
            self._clear_progress()
        elif word == "deadlock":
            self._fail("deadlock: nothing is in flight and every rank waits; the job was ended", EXIT_DEADLOCK)
            self._deadlock_at = time.monotonic() + _DEADLOCK_LINES_WITHIN_S
        elif word == "deadlock-end":
            self._tell_finished_apart()
            self._tell_entries()
            self._end_launcher()
        elif word == "deadlock-rank":
            rank, _, call = rest.partition(" ")
            self._outcome.details.append(f"{self._rank_text(rank)}: {call}")
        elif word == "deadlock-triggers":
            operations, entries = rest.split()
            self._without_entry.append((int(operations), int(entries)))
        elif word == "without-entry":
            rank, entries = rest.split()
            self._clear_progress()
            self._say(f"warning: {self._rank_text(rank)} {sentences.WITHOUT_ENTRY.format(entries=entries)}")
        elif word in sentences.WARNINGS:
            rank, pid, *calls = rest.split(" ", 2)
            name, text = sentences.WARNINGS[word]
            self._warn(name, f"{self._rank_text(rank, pid)} {text.format(call=' '.join(calls))}")
        elif word == "unreachable":
            rank, _, other = rest.partition(" ")
            text = f"the NIC of {self._rank_text(rank)} has given up: nothing gets through to {self._rank_text(other)}"
            self._warn("unreachable", text)
        elif word == "damaged":
            rank, pid, reason = rest.split(" ", 2)
            who = self._rank_text(rank, pid)
            self._fail(f"{who} {sentences.DAMAGED.format(reason=reason)}; the job was ended", EXIT_SIMULATOR)
            self._end_launcher()
        elif word == "warn":
            self._warn("simulator", rest)
        elif word == "fatal":
            self._fail(rest, EXIT_SIMULATOR)
            self._end_launcher()

    def _tell_finished_apart(self) -> None:
        """A rank in MPI_Finalize waits for the others, and not they for it as for a message: unless they do."""
        finished = sum(line.endswith(": MPI_Finalize") for line in self._outcome.details)
        if finished and self._outcome.exit_status == EXIT_DEADLOCK:
            ranks = "1 rank has" if finished == 1 else f"{finished} ranks have"
            self._outcome.failure = (
                f"deadlock: nothing is in flight, {ranks} come to MPI_Finalize and every other rank waits in a call; "
                "the job was ended"
            )

    def _tell_entries(self) -> None:
        if not self._without_entry or self._outcome.exit_status != EXIT_DEADLOCK:
            return
        operations, ranks = sum(count for count, _ in self._without_entry), len(self._without_entry)
        self._outcome.failure += (
            f"; {operations:,} triggered operation{'s' if operations != 1 else ''} of "
            f"{ranks} rank{'s' if ranks != 1 else ''} wait{'s' if operations == 1 else ''} at the NIC for an entry, of "
            f"which a process has {self._without_entry[0][1]}, behind others whose counters are not there: "
            f"{TRIGGERED_LIMIT}"
        )

    def _name_stragglers(self) -> None:
        if self._launcher is None or not self._launcher.alive:
            return
        for each in stragglers.of_launcher(self._launcher.process.pid):
            does = "computes" if each.computes else "waits for something"
            who = self._rank_text(each.rank, each.pid)
            self._warn("running_on", f"{who} has not ended: every rank was in MPI_Finalize 10 s ago, and it {does}")

    def _clear_progress(self) -> None:
        if self._spec.progress is not None:
            self._spec.progress.clear()

    def _from_launcher(self, line: str) -> None:
        words = line.split()
        word = words[0] if words else ""
        if word == "exit":
            self._fail(f"{self._rank_text(words[2], words[4])} exited with status {words[6]}; the job was ended", 1)
        elif word == "signal":
            name = _signal_text(int(words[6]))
            self._fail(f"{self._rank_text(words[2], words[4])} was killed by {name}; the job was ended", 1)
        elif word == "abort":
            self._fail(f"{self._rank_text(words[2])} called MPI_Abort with code {words[4]}", 1)
        elif word == "early":
            left_out = "calling MPI_Finalize, or with a session of MPI open"
            self._fail(f"{self._rank_text(words[2])} ended without {left_out}; the job was ended", 1)
        elif word == "unseen":
            self._fail(f"{self._rank_text(words[2])} {sentences.UNSEEN}; the job was ended", 2)
        elif word == "vanished":
            who = self._rank_text(words[2], words[4])
            self._fail(f"{who} was ended by {self._spec.launcher}, or from outside; the job was ended", 1)
        elif word == "starter" and words[1] != "signal" and self._refused_options():
            options = f"--launcher-options {self._spec.launcher_options}"
            self._fail(
                f"{options}: {self._spec.launcher} did not start the job with them (exit status {words[2]}), and says "
                "above what it accepts",
                2,
            )
        elif word == "starter":
            what = (
                f"was killed by {_signal_text(int(words[2]))}"
                if words[1] == "signal"
                else f"exited with status {words[2]}"
            )
            self._fail(f"the launcher ({self._spec.launcher}) {what}; the job was ended", 1)
        elif word == "interrupted":
            asked = f"dryfly-launch was asked to end by {_signal_text(int(words[1]))}"
            self._fail(f"{asked}; the job was ended", 128 + int(words[1]))
        elif word == "timeout":
            text = f"the job did not end within --timeout {self._spec.timeout_s:g} s and was ended"
            if self._reached_ps:
                text += (
                    f" at {time_text(self._reached_ps)} of virtual time (if it has a loop that ends by the clock: "
                    "docs/guide/loops-by-the-clock.md)"
                )
            self._fail(text, EXIT_TIMEOUT)
        elif word == "lost":
            self._fail(f"dryfly-launch was killed by {_signal_text(int(words[1]))}; the job was ended", EXIT_SIMULATOR)
        elif word == "noexec":
            self._fail(f"{line.removeprefix('noexec ')}", 127)

    def _refused_options(self) -> bool:
        """A launcher that ends before any rank was there has not understood what the user told it."""
        return bool(self._spec.launcher_options) and self._outcome.attached == 0

    def _rank_text(self, rank: str, pid: str = "") -> str:
        index = int(rank) if rank.isdecimal() else -1
        names = self._spec.node_names
        node = f" on {names[index]}" if 0 <= index < len(names) else ""
        return f"rank {rank}{node}" + (f" (pid {pid})" if pid else "")

    def _fail(self, sentence: str, status: int) -> None:
        """The first failure is the cause; what follows from it is not reported."""
        if not self._outcome.failure:
            self._outcome.failure, self._outcome.exit_status = sentence, status

    def _warn(self, name: str, sentence: str) -> None:
        """All findings are in the result; of those with the same name only some are said while the job runs."""
        self._outcome.findings.append(Finding(name=name, text=sentence))
        so_far = sum(finding.name == name for finding in self._outcome.findings)
        self._clear_progress()
        if so_far <= _WARNINGS_SAID:
            self._say(f"warning: {sentence}")
        elif so_far == _WARNINGS_SAID + 1:
            self._say("warning: the same of further ranks, which the summary counts")

    def _conclude(self) -> None:
        """The launcher's exit status is the job's, unless something other than a rank has ended it."""
        outcome = self._outcome
        launcher = self._launcher.process.returncode if self._launcher is not None else 0
        if self._signal:
            outcome.failure = f"interrupted by {_signal_text(self._signal)}; the job was ended"
            outcome.exit_status = 128 + self._signal
        elif self._conductor.kill_at is None and outcome.exit_status in (0, 1) and not outcome.has_result:
            # It went by itself, and the ranks only followed.
            ending = self._conductor.how_it_ended()
            outcome.failure = f"the simulator (dryfly-conductor) {ending}; the job was ended"
            outcome.exit_status = EXIT_SIMULATOR
        elif self._launcher is not None and launcher < 0 and not self._launcher.kill_at and outcome.exit_status > 128:
            # Its second process was asked to end because the first was killed.
            outcome.failure = f"dryfly-launch {self._launcher.how_it_ended()}; the job was ended"
            outcome.exit_status = EXIT_SIMULATOR
        elif outcome.failure:
            if outcome.exit_status == 1:
                outcome.exit_status = launcher if launcher > 0 else 1
        elif self._launcher is not None and launcher != 0:
            ending = self._launcher.how_it_ended()
            self._fail(f"dryfly-launch {ending}; the job was ended", EXIT_SIMULATOR if launcher < 0 else launcher)
        elif outcome.attached and not outcome.has_result:
            self._fail("the simulation did not come to its end: a rank left without MPI_Finalize", 1)

    # Descriptors and signals.

    def _keep(self, descriptor: int) -> int:
        self._descriptors.append(descriptor)
        return descriptor

    def _pipe(self) -> tuple[int, int]:
        read, write = os.pipe()
        return self._keep(read), self._keep(write)

    def _close_now(self, *descriptors: int) -> None:
        for descriptor in descriptors:
            self._descriptors.remove(descriptor)
            os.close(descriptor)

    def _watch_lines(self, descriptor: int, handle: Callable[[str], None]) -> None:
        os.set_blocking(descriptor, False)
        lines = _Lines(descriptor, handle)
        self._sources.append(lines)
        self._selector.register(descriptor, selectors.EVENT_READ, lambda: self._read_lines(lines))

    def _read_lines(self, source: _Lines) -> bool:
        """False when nothing more is there now."""
        if source.ended:
            return False
        more = source.read()
        if source.ended:
            self._selector.unregister(source.descriptor)
        return more and not source.ended

    def _drain(self) -> None:
        """What a process wrote before it ended counts before its end."""
        for source in self._sources:
            while self._read_lines(source):
                pass

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGINT and self._spec.debug_rank is not None:
            return  # Ctrl-C is for the debugger
        self._signal = self._signal or number
        self._end_launcher()

    def _close(self) -> None:
        for child in self._children:
            if child.alive:
                child.process.kill()
                child.process.wait()
        self._selector.close()
        for descriptor in self._descriptors:
            os.close(descriptor)


def how_it_ended(code: int) -> str:
    """Of a process with this `returncode`."""
    return f"was killed by {_signal_text(-code)}" if code < 0 else f"ended with status {code}"


def _signal_text(number: int) -> str:
    try:
        return f"signal {number} ({signal.strsignal(number) or signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
