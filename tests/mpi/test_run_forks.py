"""A program that forks, and one that starts others without a copy of itself: what the machine would have done."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import CHECK, Ended

_OLD = ("--set", "host.kernel=5.3.18")


def row_of(ended: Ended) -> dict[str, object] | None:
    rows = [row for row in ended.succeeded().results["health"] if row["name"] == "fork"]
    return rows[0] if rows else None


def run(dryfly: Dryfly, *what: str | Path, **environment: str) -> Ended:
    return dryfly("run", "--machine", "testbed", "-n", "2", "--compute", "none", *what, environment=environment)


def test_python_that_forks_is_warned_of_under_an_old_kernel_only(dryfly: Dryfly) -> None:
    new = row_of(run(dryfly, "--", CHECK / "forks.py"))
    assert new is not None
    assert new["severity"] == "note"
    old = row_of(run(dryfly, *_OLD, "--", CHECK / "forks.py"))
    assert old is not None
    assert old["severity"] == "warning"
    assert "wrong data" in str(old["text"])


@pytest.mark.parametrize(
    ("how", "forks"), [("fork", 2), ("system", 0), ("popen", 0), ("spawn", 0), ("vfork", 0), ("before", 0)]
)
def test_only_a_child_with_a_copy_of_its_parent_matters(
    how: str, forks: int, dryfly: Dryfly, programs: Programs
) -> None:
    ended = run(dryfly, *_OLD, "--", programs.check("forks_c.c"), how)
    assert sum(row["forks"] for row in ended.succeeded().results["ranks_detail"]) == forks
    assert (row_of(ended) is not None) == (forks > 0)


def test_the_setting_makes_it_a_note_and_changes_no_result(dryfly: Dryfly, programs: Programs) -> None:
    program = programs.check("forks_c.c")
    plain = run(dryfly, *_OLD, "--", program, "fork").succeeded()
    safe = run(dryfly, *_OLD, "--", program, "fork", CXI_FORK_SAFE="1", CXI_FORK_SAFE_HP="1").succeeded()
    row = row_of(safe)
    assert row is not None
    assert row["severity"] == "note"
    assert "segmentation fault" in str(row["text"])
    assert safe.fingerprint == plain.fingerprint
    assert safe.results["virtual_time_s"] == plain.results["virtual_time_s"]


def test_a_kernel_that_is_none_is_refused(dryfly: Dryfly) -> None:
    ended = run(dryfly, "--set", "host.kernel=new", "--", "true")
    assert ended.exit_status == 2
    assert "accepted is a version of Linux, such as 5.14.21" in ended.stderr
