"""The microbenchmarks of programs/micro under dryfly: their tables are read by what reads OSU's, and no message is
faster than the hardware."""

from __future__ import annotations

import re

from conftest import Dryfly, Programs

_COMMAND = ("run", "--machine", "testbed", "-N", "2", "--compute", "none", "--")
_LINK_MB_PER_S = 25_000  # 200 Gbit/s


def _table(output: str) -> dict[int, list[float]]:
    rows = re.findall(r"^(\d+)((?: +[\d.]+)+)$", output, flags=re.MULTILINE)
    return {int(size): [float(cell) for cell in cells.split()] for size, cells in rows}


def test_latency_grows_with_size(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(*_COMMAND, programs.micro("latency.c"), "count=20").succeeded()
    table = _table(run.stdout)
    assert list(table) == [2**k for k in range(23)]
    assert table[1][0] < table[4096][0] < table[65536][0] < table[4194304][0]
    assert table[4194304][0] >= 4194304 / _LINK_MB_PER_S  # us: the time the bytes need on the link


def test_bandwidth_approaches_the_link_and_never_passes_it(dryfly: Dryfly, programs: Programs) -> None:
    run = dryfly(*_COMMAND, programs.micro("bandwidth.c"), "count=2").succeeded()
    table = _table(run.stdout)
    assert list(table) == [2**k for k in range(23)]
    assert all(row[0] < _LINK_MB_PER_S for row in table.values())
    assert table[4194304][0] > 0.8 * _LINK_MB_PER_S


def test_pairs_add_up_in_the_message_rate(dryfly: Dryfly, programs: Programs) -> None:
    program = (programs.micro("message_rate.c"), "largest=8", "count=4")
    one = _table(dryfly(*_COMMAND, *program).succeeded().stdout)
    many = _table(
        dryfly("run", "--machine", "testbed", "-N", "8", "--compute", "none", "--", *program).succeeded().stdout
    )
    # Four pairs on eight NICs share no NIC: between three and four times one pair's rate.
    assert 3 * one[8][1] < many[8][1] <= 4.01 * one[8][1]


def test_collectives_take_virtual_time(dryfly: Dryfly, programs: Programs) -> None:
    for name, least_us in [("alltoall.c", 7 * 4096 / _LINK_MB_PER_S), ("allreduce.c", 1.0)]:
        run = dryfly(
            "run", "--machine", "testbed", "-n", "8", "--compute", "none", "--", programs.micro(name), "count=3"
        ).succeeded()
        match = re.search(r"on 8 ranks: ([\d.]+) us", run.stdout)
        assert match is not None
        # alltoall: each rank sends 7 blocks of 4 KiB through its one link; allreduce: at least one message.
        assert float(match.group(1)) > least_us
