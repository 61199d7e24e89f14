"""What dryfly-launch does to processes: endings, signals, wrappers, and that nothing is left behind.

Usage: process_test.py PATH_OF_DRYFLY_LAUNCH. MPI programs are played by a few lines of Python that speak PMI-1 or 2; the
last tests use MPICH itself where mpicc is found (DRYFLY_TEST_MPICC, else PATH).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

LAUNCH = ""

# ask() speaks PMI-1; a rank that has asked "init" is inside MPI.
PMI_CLIENT = """
import os, signal, subprocess, sys, time
fd, rank = int(os.environ["PMI_FD"]), int(os.environ["PMI_RANK"])
def ask(command):
    os.write(fd, f"cmd={command}\\n".encode())
    return os.read(fd, 4096).decode()
def init():
    ask("init pmi_version=1 pmi_subversion=1")
    ask("barrier_in")
def send_2(message):
    os.write(fd, f"{len(message):6}{message}".encode())
def ask_2(message):
    send_2(message)
    return os.read(fd, int(os.read(fd, 6))).decode()
def init_2():
    ask("init pmi_version=2 pmi_subversion=0")
    ask_2(f"cmd=fullinit;pmirank={rank};")
"""


class Job:
    """One run of dryfly-launch, with a marker in its environment by which its processes are found."""

    def __init__(
        self,
        command: list[str],
        *,
        ranks: int = 4,
        plan: str = "",
        options: list[str] | None = None,
        before_start: Callable[[], None] | None = None,
    ) -> None:
        self.marker = f"DRYFLY_TEST_MARKER={os.getpid()}-{time.monotonic_ns()}"
        self.directory = tempfile.TemporaryDirectory()
        self.status_file = Path(self.directory.name, "status")
        plan_file = Path(self.directory.name, "plan")
        lines = [f"rank {rank} node {rank // 4} local {rank % 4}" for rank in range(ranks)]
        plan_file.write_text("\n".join([*lines, f"env {self.marker}", plan]) + "\n")
        attach_read, self.attach_fd = os.pipe()
        with self.status_file.open("w") as status:
            self.started = time.monotonic()
            self.process = subprocess.Popen(
                [
                    LAUNCH,
                    "--plan",
                    str(plan_file),
                    "--status-fd",
                    str(status.fileno()),
                    "--attach-fd",
                    str(attach_read),
                    *(options or []),
                    "--",
                    *command,
                ],
                pass_fds=[status.fileno(), attach_read],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=before_start,
            )
        os.close(attach_read)

    def attach(self, rank: int, pid: int) -> None:
        os.write(self.attach_fd, f"attached {rank} {pid}\n".encode())

    def wait(self, text: str = "") -> str:
        """Ends the input, waits for the end; returns the status line, keeps output and time."""
        self.output, self.errors = self.process.communicate(text, timeout=30)
        self.seconds = time.monotonic() - self.started
        self.code = self.process.returncode
        os.close(self.attach_fd)
        line = self.status_file.read_text().rstrip("\n")
        self.directory.cleanup()
        return line

    def processes(self) -> list[int]:
        """The processes of the job, dryfly-launch itself excepted."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found


def children_of(parent: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def python(script: str) -> list[str]:
    return [sys.executable, "-S", "-c", PMI_CLIENT + script]


def until(condition: Callable[[], bool], *, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class ProcessTest(unittest.TestCase):
    def finish(self, job: Job, *, status: str, code: int, text: str = "") -> None:
        line = job.wait(text)
        self.assertRegex(line, f"^{status}$", job.errors)
        self.assertEqual(job.code, code, job.errors)
        self.assertLess(job.seconds, 5.0)
        self.assertTrue(until(lambda: not job.processes(), seconds=2.0), "processes are left")

    # How a job ends.

    def test_a_program_without_mpi_runs_once_for_each_rank(self) -> None:
        job = Job(["sh", "-c", "echo $DRYFLY_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS"], ranks=6)
        self.finish(job, status="done", code=0)
        want = [f"{rank} 6 {rank % 4} {4 if rank < 4 else 2}" for rank in range(6)]
        self.assertEqual(sorted(job.output.splitlines()), want)

    def test_a_rank_may_end_before_the_others_after_finalize(self) -> None:
        job = Job(python("init(); ask('finalize'); time.sleep(0 if rank == 1 else 0.3)"))
        self.finish(job, status="done", code=0)

    def test_the_first_exit_code_ends_the_job(self) -> None:
        job = Job(["sh", "-c", "if [ $DRYFLY_RANK = 2 ]; then exit 7; fi; sleep 60"])
        self.finish(job, status=r"exit rank 2 pid \d+ code 7", code=7)

    def test_death_by_a_signal_ends_the_job(self) -> None:
        job = Job(["sh", "-c", "if [ $DRYFLY_RANK = 1 ]; then kill -SEGV $$; fi; sleep 60"])
        self.finish(job, status=r"signal rank 1 pid \d+ signal 11", code=139)

    def test_ranks_that_ignore_sigterm_are_killed(self) -> None:
        job = Job(["sh", "-c", "trap '' TERM; if [ $DRYFLY_RANK = 0 ]; then exit 3; fi; sleep 60"])
        self.finish(job, status=r"exit rank 0 pid \d+ code 3", code=3)
        self.assertGreater(job.seconds, 0.5)

    def test_abort_gives_its_code(self) -> None:
        job = Job(python("init()\nif rank == 3: os.write(fd, b'cmd=abort exitcode=42 message=x\\n')\ntime.sleep(60)"))
        self.finish(job, status="abort rank 3 code 42", code=42)

    def test_an_abort_code_that_fits_no_exit_status_is_still_a_failure(self) -> None:
        job = Job(python("init(); os.write(fd, b'cmd=abort exitcode=512\\n'); time.sleep(60)"), ranks=1)
        self.finish(job, status="abort rank 0 code 512", code=1)

    def test_an_end_with_0_inside_mpi_is_early(self) -> None:
        job = Job(python("init()\nif rank != 2: time.sleep(60)"))
        self.finish(job, status="early rank 2", code=1)

    def test_an_mpi_that_the_preload_does_not_see_is_refused(self) -> None:
        plan = "env DRYFLY_CHANNEL=none"
        self.finish(Job(python("init()\ntime.sleep(60)"), plan=plan), status=r"unseen rank \d", code=2)
        watched = "os.write(fd, b'cmd=watched\\n'); init(); ask('finalize')"
        self.finish(Job(python(watched), plan=plan), status="done", code=0)

    def test_what_ranks_print_before_they_all_exit_is_not_lost(self) -> None:
        """Each a tenth of a second behind the one before; a rank that goes on for ever does not keep the job."""
        for code, status in ((0, "early rank 0"), (4, "exit rank 0 pid")):
            told = f"print('leaves', rank); sys.exit({code})"
            job = Job(python(f"init()\nif rank == 7: time.sleep(60)\ntime.sleep(0.1 * rank)\n{told}"), ranks=8)
            self.assertTrue(job.wait().startswith(status))
            self.assertEqual(job.output.split(), [word for rank in range(7) for word in ("leaves", str(rank))])

    def test_ranks_that_speak_pmi_2_exchange_what_they_put(self) -> None:
        script = """
init_2()
ask_2(f"cmd=kvs-put;key={rank};value=of {rank};")
ask_2("cmd=kvs-fence;")
found = ask_2(f"cmd=kvs-get;jobid=x;key={(rank + 1) % 6};")
if rank % 4 == 0: time.sleep(0.1); ask_2(f"cmd=info-putnodeattr;key=node;value={rank // 4};")
here = ask_2("cmd=info-getnodeattr;key=node;wait=TRUE;")
line = f"{rank} {found.split('value=')[1]} {here.split('value=')[1]}\\n"
os.write(1, line.encode())  # as a whole, between those of the others
ask_2("cmd=finalize;")
"""
        job = Job(python(script), ranks=6)
        self.finish(job, status="done", code=0)
        want = [f"{rank} of {(rank + 1) % 6}; {rank // 4};" for rank in range(6)]
        self.assertEqual(sorted(job.output.splitlines()), want)

    def test_ranks_that_speak_pmi_2_end_as_those_of_pmi_1(self) -> None:
        abort = "init_2()\nif rank == 3: send_2('cmd=abort;exitcode=42;message=x;')\ntime.sleep(60)"
        self.finish(Job(python(abort)), status="abort rank 3 code 42", code=42)
        self.finish(Job(python("init_2()\nif rank != 2: time.sleep(60)")), status="early rank 2", code=1)
        unseen = Job(python("init_2()\ntime.sleep(60)"), plan="env DRYFLY_CHANNEL=none")
        self.finish(unseen, status=r"unseen rank \d", code=2)

    def test_a_rank_that_skips_mpi_is_early_where_others_use_it(self) -> None:
        job = Job(python("if rank != 1: init()"))
        self.finish(job, status="early rank 1", code=1)

    def test_a_program_that_is_not_there(self) -> None:
        job = Job(["/nowhere/program"])
        self.finish(job, status="noexec /nowhere/program No such file or directory", code=127)

    def test_a_directory_that_is_not_there(self) -> None:
        job = Job(["true"], plan="cwd /nowhere")
        self.finish(job, status="noexec /nowhere No such file or directory", code=127)

    def test_the_time_given(self) -> None:
        job = Job(["sleep", "60"], options=["--timeout", "0.2"])
        self.finish(job, status="timeout", code=124)

    # What a rank is given.

    def test_input_goes_to_the_named_rank_and_the_others_read_an_end_of_file(self) -> None:
        job = Job(["sh", "-c", "echo $DRYFLY_RANK $(cat)"], ranks=3, plan="stdin-rank 1")
        self.finish(job, status="done", code=0, text="words\n")
        self.assertEqual(sorted(job.output.splitlines()), ["0", "1 words", "2"])

    def test_directory_search_path_and_limits(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory, "only-here")
            program.write_text("#!/bin/sh\npwd; ulimit -Sn; ls /proc/self/fd | wc -l; echo $WHO\n")
            program.chmod(0o755)
            job = Job(
                ["only-here"],
                ranks=2,
                plan=f"cwd /usr/lib\nenv PATH={directory}:/usr/bin:/bin\nenv WHO=all\nrankenv 1 WHO=one",
            )
            self.finish(job, status="done", code=0)
        limit = subprocess.run(["sh", "-c", "ulimit -Sn"], capture_output=True, text=True, check=True).stdout.strip()
        # Descriptors of ls: standard input, output, error, the PMI socket, the folder it lists.
        self.assertEqual(sorted(job.output.splitlines()), sorted(["/usr/lib", limit, "5"] * 2 + ["all", "one"]))

    def test_the_debug_command_wraps_one_rank(self) -> None:
        job = Job(
            ["sh", "-c", "echo $DRYFLY_RANK $EXTRA"], options=["--debug-rank", "2", "--debug-command", "env", "EXTRA=x"]
        )
        self.finish(job, status="done", code=0)
        self.assertEqual(sorted(job.output.splitlines()), ["0", "1", "2 x", "3"])

    # Wrappers: the MPI process is a child of the rank.

    def wrapped(self, mpi: str, wrapper: str) -> Job:
        """Rank 0 is a wrapper around `mpi`; its pid, which the conductor would report, comes over standard output.

        The wrapper keeps the PMI socket open for its child, as PyPI's `lmp` does and every MPI launcher requires.
        """
        inner = PMI_CLIENT + "print(os.getpid(), flush=True); sys.stdin.readline()\n" + mpi
        job = Job(
            [
                sys.executable,
                "-S",
                "-c",
                f"import subprocess, sys\nprocess = subprocess.Popen([sys.executable, "
                f"'-S', '-c', {inner!r}], close_fds=False)\n{wrapper}",
            ],
            ranks=1,
        )
        assert job.process.stdout is not None and job.process.stdin is not None
        self.mpi_pid = int(job.process.stdout.readline())
        job.attach(0, self.mpi_pid)
        time.sleep(0.1)
        return job

    def test_a_signal_is_seen_behind_a_wrapper_that_hides_it(self) -> None:
        job = self.wrapped("os.kill(os.getpid(), signal.SIGBUS)", "process.wait()\nimport time; time.sleep(60)")
        self.finish(job, status=f"signal rank 0 pid {self.mpi_pid} signal 7", code=135, text="go\n")

    def test_an_exit_code_is_seen_behind_a_wrapper_that_hides_it(self) -> None:
        job = self.wrapped("sys.exit(5)", "process.wait()")
        self.finish(job, status=f"exit rank 0 pid {self.mpi_pid} code 5", code=5, text="go\n")

    def test_a_wrapper_may_end_before_its_program(self) -> None:
        job = self.wrapped("init(); time.sleep(1); ask('finalize'); print('late')", "import time; time.sleep(0.5)")
        self.finish(job, status="done", code=0, text="go\n")
        self.assertIn("late", job.output)

    def test_a_wrapper_that_ends_with_its_program_is_a_normal_end(self) -> None:
        job = self.wrapped("init(); ask('finalize')", "sys.exit(process.wait())")
        self.finish(job, status="done", code=0, text="go\n")

    def test_a_wrapper_s_code_is_read_as_a_signal_when_the_program_was_gone_before_it_could_be_watched(self) -> None:
        job = Job([sys.executable, "-S", "-c", "import sys; sys.stdin.readline(); sys.exit(-9)"], ranks=1)
        ended = subprocess.Popen(["true"])
        ended.wait()
        job.attach(0, ended.pid)
        time.sleep(0.1)
        self.finish(job, status=r"signal rank 0 pid \d+ signal 9", code=137, text="go\n")

    # Nothing is left behind.

    def test_a_daemon_of_a_rank_ends_with_the_job(self) -> None:
        job = Job(["sh", "-c", "setsid sleep 60 & exit 0"], ranks=2)
        self.finish(job, status="done", code=0)

    def test_signals_to_dryfly_launch_end_the_job(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                job = Job(["sh", "-c", "sleep 60 & wait"])
                self.assertTrue(until(lambda job=job: len(job.processes()) >= 8))
                job.process.send_signal(number)
                self.finish(job, status=f"interrupted {number}", code=128 + number)

    def test_sigkill_to_either_process_of_dryfly_launch_leaves_nothing(self) -> None:
        # The shells' children have another session and no PR_SET_PDEATHSIG: the other process has to find them.
        for victim in ("guard", "supervisor"):
            with self.subTest(victim):
                job = Job(["sh", "-c", "setsid sleep 60 & wait"])
                self.assertTrue(until(lambda job=job: len(job.processes()) >= 8))
                pid = job.process.pid if victim == "guard" else children_of(job.process.pid)[0]
                os.kill(pid, signal.SIGKILL)
                if victim == "guard":
                    self.finish(job, status="interrupted 15", code=-9)
                else:
                    self.finish(job, status="lost 9", code=137)

    def test_the_job_ends_when_nobody_reads_its_status_any_more(self) -> None:
        status_read, status_write = os.pipe()
        with tempfile.NamedTemporaryFile("w") as plan:
            plan.write("rank 0 node 0 local 0\n")
            plan.flush()
            command = [LAUNCH, "--plan", plan.name, "--status-fd", str(status_write), "--", "sleep", "60"]
            process = subprocess.Popen(command, pass_fds=[status_write])
            os.close(status_write)
            self.assertTrue(until(lambda: any(children_of(child) for child in children_of(process.pid))))
            os.close(status_read)
            self.assertEqual(process.wait(timeout=5), 128 + signal.SIGHUP)

    def test_ctrl_c_at_a_terminal_ends_the_job_and_is_named_as_the_cause(self) -> None:
        master, terminal = os.openpty()
        with tempfile.TemporaryDirectory() as directory:
            plan, status = Path(directory, "plan"), Path(directory, "status")
            plan.write_text("rank 0 node 0 local 0\nrank 1 node 0 local 1\n")
            # The outer shell lives through Ctrl-C to print the exit status.
            launch = f"exec {LAUNCH} --plan {plan} --status-fd 9 -- sh -c 'echo up; cat; sleep 60' 9>{status}"
            process = subprocess.Popen(
                ["setsid", "--ctty", "--wait", "sh", "-c", f"trap : INT; ({launch}); echo code $?"],
                stdin=terminal,
                stdout=terminal,
                stderr=terminal,
            )
            os.close(terminal)
            seen = ""
            while seen.count("up") < 2:
                seen += os.read(master, 4096).decode()
            os.write(master, b"\x03")
            while "code" not in seen or not seen.endswith("\n"):
                seen += os.read(master, 4096).decode()
            process.wait(timeout=10)
            os.close(master)
            self.assertIn("code 130", seen)
            self.assertEqual(status.read_text(), "interrupted 2\n")

    # The user's input.

    def test_bad_command_lines_are_one_sentence(self) -> None:
        for options, sentence in (
            ([], "the program is missing; it follows `--`"),
            (["--plan", "/nowhere", "--", "x"], "--plan /nowhere: it cannot be read"),
            (["--plan", "x", "--timeout", "-1", "--", "x"], "--timeout -1: a number from 0 is accepted"),
            (["--plan", "x", "--status-fd", "77", "--", "x"], "--status-fd 77: it is not open"),
            (["--plan", "x", "--debug-rank", "1", "--", "x"], "--debug-rank and --debug-command go together"),
        ):
            with self.subTest(options):
                result = subprocess.run([LAUNCH, *options], capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr, f"dryfly-launch: {sentence}\n")

    # Speed; the bounds are ten times what a quiet two-core machine takes.

    def test_start_up_of_many_ranks(self) -> None:
        for ranks, bound in ((64, 1.0), (512, 8.0)):
            job = Job(["true"], ranks=ranks)
            self.assertEqual(job.wait(), "done")
            print(f"\n{ranks} ranks of `true`: {job.seconds:.3f} s", file=sys.stderr)
            self.assertLess(job.seconds, bound)


def _with_own_shared_memory() -> None:
    """An aborted MPICH leaves its files in /dev/shm now and then: here in one that is gone with its last process."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, recursive_and_private = 0x20000, 0x44000
    if libc.unshare(new_mounts) == 0:
        libc.mount(b"none", b"/", None, recursive_and_private, None)
        libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, None)


@unittest.skipUnless(os.environ.get("DRYFLY_TEST_MPICC") or shutil.which("mpicc"), "no mpicc")
class MpichTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.directory = tempfile.TemporaryDirectory()
        cls.program = str(Path(cls.directory.name, "program"))
        source = Path(__file__).with_name("process_test_mpi.c")
        mpicc = os.environ.get("DRYFLY_TEST_MPICC") or "mpicc"
        subprocess.run([mpicc, "-w", str(source), "-o", cls.program], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.directory.cleanup()

    def test_mpich_sees_the_ranks_and_their_nodes(self) -> None:
        job = Job([self.program], ranks=10)
        self.assertEqual(job.wait(), "done", job.errors)
        # The sum of the ranks 0 to 9 is 45; the third node has ranks 8 and 9 only.
        want = [f"{rank}/10 {rank % 4}/{4 if rank < 8 else 2} 45" for rank in range(10)]
        self.assertEqual(sorted(job.output.splitlines()), want)

    def test_mpi_abort_gives_its_code(self) -> None:
        job = Job([self.program, "7"], before_start=_with_own_shared_memory)
        self.assertEqual(job.wait(), "abort rank 2 code 7", job.errors)
        self.assertEqual(job.code, 7)


if __name__ == "__main__":
    LAUNCH = sys.argv.pop(1)
    unittest.main()
