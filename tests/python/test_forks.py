"""What is said of a program that has forked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.machine.load import load
from dryfly.result import forks


def verdict(
    kernel: str | None, environment: dict[str, str] | None = None, *, ranks: int = 1
) -> tuple[str, str, int] | None:
    machine = SimpleNamespace(optional=lambda path: {"host.kernel": kernel}[path])
    run: Any = SimpleNamespace(machine=machine)
    rows = [{"rank": rank, "forks": 1 if rank < ranks else 0} for rank in range(4)]
    return forks.health(run, rows, environment or {})


@pytest.mark.parametrize(
    ("kernel", "copies"),
    [
        ("4.12.14-197.78_9.1.58", False),
        ("5.3.18", False),
        ("5.11.22", False),
        ("5.12", True),
        ("5.14.21-150400.24.46_12.0.83-cray_shasta_c", True),
        ("6.4.0", True),
    ],
)
def test_linux_copies_pinned_pages_at_a_fork_from_5_12_on(kernel: str, copies: bool) -> None:
    assert forks.copies_at_fork(kernel) is copies
    row = verdict(kernel)
    assert row is not None
    assert row[0] == ("note" if copies else "warning")


def test_without_a_fork_nothing_is_said() -> None:
    assert verdict("5.3.18", ranks=0) is None


def test_a_fork_under_an_old_kernel_without_the_setting_makes_wrong_data() -> None:
    row = verdict("5.3.18", ranks=2)
    assert row is not None
    severity, text, count = row
    assert (severity, count) == ("warning", 2)
    assert "wrong data" in text
    assert "2 ranks have forked" in text
    assert "CXI_FORK_SAFE=1" in text


def test_the_setting_counts_whatever_its_value() -> None:
    for value in ("1", "0", ""):
        row = verdict("5.3.18", {"CXI_FORK_SAFE": value})
        assert row is not None
        assert row[0] == "note"
        assert "safe by CXI_FORK_SAFE" in row[1]
        assert "CXI_FORK_SAFE_HP too" in row[1]
    both = verdict("5.3.18", {"CXI_FORK_SAFE": "1", "CXI_FORK_SAFE_HP": "1"})
    assert both is not None
    assert "huge" not in both[1]


def test_the_setting_for_huge_pages_does_nothing_alone() -> None:
    row = verdict("5.3.18", {"CXI_FORK_SAFE_HP": "1"})
    assert row is not None
    assert row[0] == "warning"
    assert "alone does nothing" in row[1]


def test_the_pages_of_event_queues_make_no_difference() -> None:
    for setting in ("FI_CXI_DISABLE_CQ_HUGETLB", "FI_CXI_DISABLE_EQ_HUGETLB"):
        assert verdict("5.3.18", {setting: "1"}) == verdict("5.3.18")


def test_on_demand_paging_pins_nothing() -> None:
    row = verdict("5.3.18", {"FI_CXI_ODP": "1"})
    assert row is not None
    assert row[0] == "note"
    off = verdict("5.3.18", {"FI_CXI_ODP": "0"})
    assert off is not None
    assert off[0] == "warning"


def test_a_machine_whose_kernel_nobody_knows_is_taken_for_an_old_one() -> None:
    row = verdict(None)
    assert row is not None
    assert row[0] == "warning"
    assert "not known" in row[1]


def test_every_machine_says_its_kernel_and_a_wrong_one_is_refused() -> None:
    assert load("frontier").text("host.kernel") == "5.14.21"
    assert load("testbed", sets=["host.kernel=5.3.18"]).text("host.kernel") == "5.3.18"
    for wrong in ("five", "5", "5.x", "linux 5.14"):
        with pytest.raises(UserError, match=r"host\.kernel.*such as 5\.14\.21"):
            load("testbed", sets=[f"host.kernel={wrong}"])
