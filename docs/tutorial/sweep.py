"""How long does a ping-pong take on several machines? Run it: python docs/tutorial/sweep.py programs/micro/pingpong.c

Computing takes no time here, so that every run gives the same figures to the last digit. A second argument is a folder:
what has been run is kept there, and the same sweep takes it from there the next time.
"""

import sys

import dryfly

cache = sys.argv[2] if len(sys.argv) > 2 else None
program = sys.argv[1] if len(sys.argv) > 1 else "programs/micro/pingpong.c"
counts = {
    dryfly.Case(program=(program, f"count={count}"), machine=machine, nodes=2, compute="none"): count
    for machine in ("testbed", "aurora")
    for count in (10, 100)
}
print(f"{'machine':<10}{'count':>6}{'virtual time (us)':>20}{'messages':>10}")
for result in dryfly.sweep(counts, parallel=2, cache=cache):
    time_us = result.virtual_time_s * 1e6
    print(f"{result.case.machine:<10}{counts[result.case]:>6}{time_us:>20.3f}{result.messages:>10}", flush=True)
