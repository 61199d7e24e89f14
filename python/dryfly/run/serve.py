"""`dryfly serve`: keeps a simulated fabric up, which processes join and leave at any time.

The conductor is a child of this process and dies with it. Nothing of the fabric is a file.
"""

from __future__ import annotations

import os
import resource
import selectors
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from dryfly.base import signals
from dryfly.base.errors import RunError, UserError
from dryfly.base.paths import CONDUCTOR, PRELOAD, PROVIDER, native
from dryfly.base.preloads import environment_without
from dryfly.case.bind import BoundCase, bind_served
from dryfly.case.case import Case
from dryfly.case.placement import RANKS_MAX
from dryfly.run import fabrics, sentences
from dryfly.run import processes as job

PROCESSES_DEFAULT = 512
_OWN_DESCRIPTORS = 32  # of the simulator itself, at most


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    case: Case = field(default_factory=Case)  # its machine, its sets and its seed
    name: str = fabrics.DEFAULT_NAME
    processes: int = PROCESSES_DEFAULT
    quiet: bool = False


def serve(options: ServeOptions) -> int:
    """Until it is interrupted. Raises UserError for what is wrong before the start."""
    fabrics.check_name(options.name)
    if not 1 <= options.processes <= RANKS_MAX:
        raise UserError(f"--processes {options.processes}: accepted is 1 to {RANKS_MAX}")
    _check_descriptors(options.processes)
    bound = bind_served(options.case, processes=options.processes)
    for part in (CONDUCTOR, PROVIDER, PRELOAD):
        native(part)
    with fabrics.open_door(options.name) as door:
        return _Server(options, bound, door).run()


def _check_descriptors(processes: int) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit != resource.RLIM_INFINITY and 2 * processes + _OWN_DESCRIPTORS > limit:
        most = max(0, limit - _OWN_DESCRIPTORS) // 2
        raise UserError(
            f"--processes {processes}: each takes two file descriptors, and the hard limit (ulimit -Hn) is {limit}: "
            f"accepted is up to {most}"
        )


@dataclass(kw_only=True)
class _Members:
    """The processes on the fabric, by place."""

    pids: dict[str, str] = field(default_factory=dict)
    so_far: int = 0


class _Server:
    def __init__(self, options: ServeOptions, bound: BoundCase, door: socket.socket) -> None:
        self._options = options
        self._machine = bound.machine
        self._spec = bound.spec
        self._door = door
        case = options.case
        machine_file = Path(case.machine)
        machine_name = str(machine_file.resolve()) if machine_file.is_file() else case.machine
        self._fabric = fabrics.Fabric(
            name=options.name, pid=os.getpid(), channel=job.new_channel(), machine=machine_name, sets=case.sets
        )
        self._members = _Members()
        self._selector = selectors.DefaultSelector()
        self._ended_by = 0
        self._rest = b""

    def run(self) -> int:
        restore = signals.watch(self._selector, self._on_signal)
        spec_file = job.memory_file("dryfly-spec", self._spec)
        lifetime_read, lifetime_write = os.pipe()
        status_read, status_write = os.pipe()
        command = [str(native(CONDUCTOR)), "--spec", f"/proc/self/fd/{spec_file}", "--channel", self._fabric.channel]
        command += ["--result", "/dev/null", "--status-fd", str(status_write), "--attach-fd", "-1"]
        command += ["--lifetime-fd", str(lifetime_read)]
        try:
            conductor = subprocess.Popen(
                command,
                pass_fds=(spec_file, status_write, lifetime_read),
                stdin=subprocess.DEVNULL,
                env=environment_without(),
                start_new_session=True,  # so that Ctrl-C reaches us, and not the conductor
            )
        except OSError as error:
            raise RunError(
                f"{command[0]} cannot be started: {error.strerror}", exit_status=job.EXIT_SIMULATOR
            ) from None
        for descriptor in (spec_file, status_write, lifetime_read):
            os.close(descriptor)
        self._selector.register(status_read, selectors.EVENT_READ, lambda: self._read_status(status_read))
        try:
            while not self._ended_by and conductor.poll() is None:
                for key, _ in self._selector.select(2.0):
                    key.data()
        finally:
            os.close(lifetime_write)
            self._end(conductor)
            restore()
        if self._ended_by:
            self._say(f'the fabric "{self._fabric.name}" is down; {self._members.so_far} processes have been on it')
            return 0
        status = conductor.returncode
        self._say(f"the simulator (dryfly-conductor) {job.how_it_ended(status)}")
        return 2 if status == 2 else job.EXIT_SIMULATOR

    def _end(self, conductor: subprocess.Popen[bytes]) -> None:
        try:
            conductor.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            conductor.kill()
            conductor.wait()

    def _read_status(self, descriptor: int) -> None:
        data = os.read(descriptor, 65536)
        if not data:
            self._selector.unregister(descriptor)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._handle(line.decode(errors="replace").split())

    def _handle(self, words: list[str]) -> None:
        match words:
            case ["ready"]:
                self._ready()
            case ["joined", place, pid, node]:
                self._members.pids[place] = pid
                self._members.so_far += 1
                self._tell(f"process {pid} has joined on {node}; {len(self._members.pids)} on the fabric")
            case ["left", place, pid]:
                self._members.pids.pop(place, None)
                self._tell(f"process {pid} has left; {len(self._members.pids)} on the fabric")
            case ["damaged", _, pid, *reason]:
                self._say(f"process {pid} {sentences.DAMAGED.format(reason=' '.join(reason))}; it is cut off")
            case ["warn", *rest]:
                self._say(f"warning: {' '.join(rest)}")

    def _ready(self) -> None:
        """Only now does the fabric answer those who ask for it."""
        self._selector.register(self._door, selectors.EVENT_READ, lambda: fabrics.answer(self._door, self._fabric))
        name = self._fabric.name
        choice = "" if name == fabrics.DEFAULT_NAME else f" --name {name}"
        self._say(
            f'"{name}" is up: {self._machine.name}, {self._machine.nodes_max:,} nodes. In another terminal: '
            f'eval "$(dryfly env{choice} --node 0)"; Ctrl-C here ends it'
        )

    def _tell(self, text: str) -> None:
        if not self._options.quiet:
            self._say(text)

    @staticmethod
    def _say(text: str) -> None:
        print(f"dryfly: {text}", file=sys.stderr, flush=True)

    def _on_signal(self, number: int) -> None:
        self._ended_by = self._ended_by or number
