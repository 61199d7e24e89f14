"""All clocks that a program reads are virtual, agree, and are moved by every way to wait; wall time is not spent."""

from __future__ import annotations

import pytest
from conftest import Dryfly, Programs
from harness import CHECK

# (program, its waits: each takes 10 virtual seconds on every rank at once)
_PROGRAMS = [("clocks.c", 9), ("clocks_cpp.cpp", 4), ("clocks_py.py", 5)]


@pytest.mark.parametrize(("name", "waits"), _PROGRAMS)
def test_clocks_agree_and_sleeping_costs_no_wall_time(
    name: str, waits: int, dryfly: Dryfly, programs: Programs
) -> None:
    program = CHECK / name if name.endswith(".py") else programs.check(name)
    run = dryfly("run", "--machine", "testbed", "-n", "4", "--", program, "10", limit_s=60).succeeded()
    assert f"ok {name.partition('.')[0]}\n" in run.stdout
    assert run.results["virtual_time_s"] >= 10 * waits
    assert run.wall_time_s < 10  # natively it would be over 40
