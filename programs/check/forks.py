"""A rank starts processes, by fork alone and with another program: they live in real time, and the rank goes on."""

import os
import subprocess
import sys
import time

import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD


def exchange(round_number: int) -> None:
    got = numpy.empty(10_000)
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    world.Sendrecv(numpy.full(10_000, world.rank + 100.0 * round_number), right, recvbuf=got, source=left)
    if not (got == left + 100.0 * round_number).all():
        world.Abort(1)


def check(truth: bool, what: str) -> None:
    if not truth:
        print(f"rank {world.rank}: {what}", file=sys.stderr, flush=True)
        world.Abort(1)


def child(writing_end: int) -> None:
    """By fork: sleeps for real and says what its clocks show."""
    before = time.monotonic()
    time.sleep(0.2)
    os.write(writing_end, f"{time.time()} {time.monotonic() - before}".encode())
    os._exit(0)


exchange(0)
virtual_day = time.time()
reading_end, writing_end = os.pipe()
before = time.monotonic()
pid = os.fork()
if pid == 0:
    child(writing_end)
os.close(writing_end)
day, slept = map(float, os.read(reading_end, 100).split())
check(os.waitpid(pid, 0)[1] == 0, "the child of os.fork failed")
check(time.monotonic() - before < 0.15, "the child's sleep has moved the rank's virtual clock")
check(0.2 <= slept < 10, f"the child slept {slept} s")
check(abs(day - virtual_day) > 86400, "the child's calendar is not the real one")
exchange(1)

program = "import time; print(time.time())"
told = float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
check(abs(told - day) < 600, "the started program's calendar is not the real one")
exchange(2)
world.Barrier()
if world.rank == 0:
    print("ok forks")
