"""Python's clocks and waits agree with MPI's. Argument: seconds of each wait (1 unless told)."""

import asyncio
import contextlib
import queue
import select
import sys
import threading
import time
from collections.abc import Callable

from mpi4py import MPI

CLOCKS: dict[str, Callable[[], float]] = {
    "MPI.Wtime": MPI.Wtime,
    "time.perf_counter": time.perf_counter,
    "time.monotonic": time.monotonic,
    "time.time": time.time,
    "time.time_ns": lambda: time.time_ns() * 1e-9,
}


def wait_on_queue(seconds: float) -> None:
    with contextlib.suppress(queue.Empty):
        queue.Queue[int]().get(timeout=seconds)


WAITS: dict[str, Callable[[float], object]] = {
    "time.sleep": time.sleep,
    "threading.Event.wait": lambda seconds: threading.Event().wait(seconds),
    "queue.Queue.get": wait_on_queue,
    "select.select": lambda seconds: select.select([], [], [], seconds),
    "asyncio.sleep": lambda seconds: asyncio.run(asyncio.sleep(seconds)),
}


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    for wait_name, wait in WAITS.items():
        before = {name: clock() for name, clock in CLOCKS.items()}
        wait(seconds)
        for name, clock in CLOCKS.items():
            moved = clock() - before[name]
            # asyncio sets up an event loop first, whose CPU time counts too.
            if not seconds - 2e-3 < moved < seconds + 0.3:
                print(f"{wait_name} of {seconds} s moved {name} by {moved:.6f} s", file=sys.stderr, flush=True)
                MPI.COMM_WORLD.Abort(1)
    MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        print("ok clocks_py")


main()
