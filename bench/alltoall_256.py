"""What bench/alltoall-256 and bench/alltoall-256-openmpi share: MPI_Alltoalls of 4 KiB on 256 ranks, timed each.

Five alltoalls in a run, each from the first rank's entry to the last rank's return by this computer's clock. The first
after start-up touches memory that nobody has touched before, so its seconds are printed beside; the figure is the rate
of the four that follow. The anchor is the round trips
of a bare hand-over in the same minute; SimGrid SMPI takes 5.3 s for one such exchange.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path

from measured_run import anchor_of_this_box, compiled, figure, median_of, rounds_asked, run_dryfly

RANKS = 256
MESSAGES = RANKS * (RANKS - 1)
ALLTOALLS = 5
SMPI_S = 5.3
HAND_OVER = "hand-over-one-processor"


def measure(name: str, *, family: str, nodes: int, ppn: int) -> None:
    firsts = []

    def messages_per_s(program: str) -> float:
        run = run_dryfly("--machine", "aurora", "-N", str(nodes), "--ppn", str(ppn), "--", program, str(ALLTOALLS))
        assert str(run.result["mpi"]["name"]).startswith(family)
        assert float(run.result["messages"]) >= ALLTOALLS * MESSAGES
        seconds = [float(number) for number in re.findall(r"^alltoall ([0-9.]+) s$", run.output, re.MULTILINE)]
        assert len(seconds) == ALLTOALLS, run.output
        further = statistics.median(seconds[1:])
        firsts.append(seconds[0])
        print(f"the first {seconds[0]:.3f} s, further ones {further:.3f} s")
        return MESSAGES / further

    bare = anchor_of_this_box(HAND_OVER)
    with compiled("alltoall_wall", family=family, folder=Path(__file__).parent) as program:
        median = median_of(rounds_asked(5), name, "messages/s", lambda: messages_per_s(program))
    first = statistics.median(firsts)
    print(f"the first after start-up {first:.2f} s, of {first / (MESSAGES / median):.2f} further ones; SMPI {SMPI_S} s")
    figure(median, "messages/s", HAND_OVER, bare)
